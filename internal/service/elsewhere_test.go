package service_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/service/servicetest"
	"github.com/ralph-pool/ralph/pool/journal"
)

// What other machines work is shown as what it is, also while they cannot be asked.
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
