package service_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/service/servicetest"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/archive"
)

// Runs of other machines are shown, even while the machines cannot be asked.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 0)
	far := journal.Record{Run: journal.Run{ID: "r-1", Key: "far", Host: "far away", Started: time.Now()}, State: journal.State{PID: 1, Process: "x"}}
	if err := p.Store.Save(t.Context(), far); err != nil {
		t.Fatal(err)
	}
	var gone atomic.Bool
	var asked atomic.Int32
	p.Elsewhere = func(context.Context) ([]journal.Record, error) {
		switch n := asked.Add(1); {
		case n == 1:
			return []journal.Record{far}, nil
		case !gone.Load():
			return nil, errors.New("the database is away")
		}
		return nil, nil
	}
	s, _ := start(t, 0, p)
	state := func() string {
		list, err := s.Runs(t.Context(), "p", journal.Query{})
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return service.RunState(list[0])
	}
	until(t, s, "p", func(service.Status) bool { return asked.Load() >= 3 })
	now := until(t, s, "p", func(now service.Status) bool { return len(now.All()) == 1 })
	if now.Elsewhere[0].ID != "r-1" || now.All()[0].Key != "far" || len(now.Running) > 0 || state() != "running" {
		t.Errorf("%+v, %s", now, state())
	}
	gone.Store(true)
	until(t, s, "p", func(now service.Status) bool { return len(now.All()) == 0 })
	if state() != "unfinished" {
		t.Error(state())
	}
}

// The folder of another machine's run is read from its copy once the run has ended. Local folders are read directly.
func TestFoldersOfOtherMachines(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 0)
	from := t.TempDir()
	if err := os.WriteFile(filepath.Join(from, "events.jsonl"), []byte(`{"kind":"note","text":"far"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	content, err := archive.Pack(from)
	if err != nil {
		t.Fatal(err)
	}
	here, private := filepath.Join(filepath.Dir(p.Repo()), "state", "runs", "r-2", "r-2"), t.TempDir()
	if err := os.MkdirAll(here, 0o700); err != nil {
		t.Fatal(err)
	}
	for id, dir := range map[string]string{"r-1": "/no/such/place", "r-2": here, "r-3": private, "r-4": private} {
		r := journal.Record{Run: journal.Run{ID: id, Key: id, Started: time.Now(), Dir: dir}}
		if id != "r-4" { // r-4 is active
			r.Ended = time.Now()
		}
		if err := p.Store.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	var asked atomic.Int32
	p.Folder = func(_ context.Context, run string) ([]byte, error) {
		if asked.Add(1); run == "r-1" {
			return content, nil
		}
		return nil, errors.New("the database is away")
	}
	s, _ := start(t, 0, p)
	until(t, s, "p", func(now service.Status) bool { return now.State == service.Waiting })
	dir := func(id string) string {
		t.Helper()
		list, err := s.Runs(t.Context(), "p", journal.Query{Run: id})
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return list[0].Dir
	}
	for range 2 {
		if text, err := os.ReadFile(filepath.Join(dir("r-1"), "events.jsonl")); err != nil || !strings.Contains(string(text), "far") {
			t.Errorf("%q, %v", text, err)
		}
	}
	if dir("r-2") != here || asked.Load() != 1 {
		t.Errorf("%s; asked %d times", dir("r-2"), asked.Load())
	}
	for _, id := range []string{"r-3", "r-4"} {
		if _, err := os.Stat(dir(id)); err == nil {
			t.Errorf("%s: a record of another machine names %s, which is read", id, dir(id))
		}
	}
	if asked.Load() != 2 { // not for r-4, which is active
		t.Errorf("asked %d times", asked.Load())
	}
}
