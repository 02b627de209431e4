package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/pool/journal"
)

// hangs is a channel that reports that it is sending, and hangs.
type hangs struct{ place string }

func (hangs) Name() string    { return "fake" }
func (h hangs) Place() string { return h.place }
func (hangs) Send(ctx context.Context, _ Message) error {
	fmt.Println("sending")
	<-ctx.Done()
	return context.Cause(ctx)
}

// open returns a notifier of outcomes with an outbox. It logs to log.
func open(dir string, log io.Writer, list ...Channel) *Notifier {
	return New(Config{Channels: list, On: []string{"failed"}, Project: "shop", Outbox: dir, Log: slog.New(slog.NewTextHandler(log, nil))})
}

// waits returns the files in the outbox.
func waits(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// What a killed process has not sent, the next one sends once, with the same id.
func TestKilled(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("NOTIFY_TEST_OUTBOX"); dir != "" {
		n := open(dir, io.Discard, hangs{"a"})
		n.Ended(ended("first", journal.Failed, true))
		n.Ended(ended("second", journal.Failed, true))
		fmt.Println("stored")
		select {}
	}
	dir := filepath.Join(t.TempDir(), "outbox")
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$")
	child.Env = append(os.Environ(), "NOTIFY_TEST_OUTBOX="+dir)
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for b := make([]byte, 64); strings.Count(said.String(), "\n") < 2; {
		n, err := out.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		said.Write(b[:n])
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	f := &fake{place: "a"}
	for range 2 {
		n := open(dir, io.Discard, f)
		n.Close()
	}
	if len(f.got) != 2 || f.got[0].ID != "r-first" || f.got[1].ID != "r-second" || f.got[1].Title != "Fix <it>" {
		t.Errorf("%+v", f.got)
	}
	if left := waits(t, dir); len(left) > 0 {
		t.Errorf("still there: %q", left)
	}
}

// A process ignores messages for channels that it does not have, including other channels of the same kind.
func TestOtherChannels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		n := open(dir, io.Discard, &fake{place: "a", block: true})
		n.Ended(ended("x", journal.Failed, true))
		n.Close()
		other := &fake{place: "b"}
		for _, list := range [][]Channel{{other}, {Program{Argv: []string{"false"}}}, nil} {
			n = open(dir, io.Discard, list...)
			n.Close()
		}
		if len(other.got) > 0 || len(waits(t, dir)) != 1 {
			t.Fatalf("the other got %+v; there is %q", other.got, waits(t, dir))
		}
		f := &fake{place: "a"}
		n = open(dir, io.Discard, f)
		n.Close()
		if len(f.got) != 1 {
			t.Errorf("%+v", f.got)
		}
	})
}

// On a reload the new notifier starts before the old one closes. It sends what the old one could not send.
func TestReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		old := open(dir, io.Discard, &fake{place: "a", block: true})
		old.Ended(ended("x", journal.Failed, true))
		synctest.Wait() // x is being sent
		f := &fake{place: "a"}
		n := open(dir, io.Discard, f)
		n.Ended(ended("y", journal.Failed, true))
		synctest.Wait()
		if len(f.texts()) != 1 { // the old notifier still has x
			t.Errorf("%q", f.texts())
		}
		old.Close()
		<-time.After(lookTime)
		synctest.Wait()
		if got := f.texts(); len(got) != 2 || !strings.HasPrefix(got[1], "shop/x") || len(waits(t, dir)) > 0 {
			t.Errorf("%q; there is %q", got, waits(t, dir))
		}
		n.Close()
	})
}

// Even messages with a very long title and reason can be read by the next process.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		old := open(dir, io.Discard, &fake{place: "a", block: true})
		e := ended("x", journal.Failed, true)
		e.Title = strings.Repeat("\u2028", 1<<20)
		e.Reason = &journal.Reason{Code: journal.ReasonPublish, Detail: e.Title}
		old.Ended(e)
		old.Close()
		f := &fake{place: "a"}
		n := open(dir, io.Discard, f)
		n.Close()
		if len(f.got) != 1 || len(waits(t, dir)) > 0 {
			t.Errorf("%d were sent; there is %q", len(f.got), waits(t, dir))
		}
	})
}

// A message that no channel accepts must not delay later messages, even if processes are short-lived.
func TestLeftHoldsUpNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		old := open(dir, io.Discard, &fake{place: "a", block: true})
		old.Ended(ended("x", journal.Failed, true))
		old.Close()
		f := &fake{place: "a", fail: []error{errors.New("away")}}
		n := open(dir, io.Discard, f)
		synctest.Wait()
		n.Ended(ended("y", journal.Failed, true))
		synctest.Wait()
		if got := f.texts(); len(got) != 1 || !strings.HasPrefix(got[0], "shop/y") {
			t.Errorf("%q", got)
		}
		<-time.After(lookTime)
		synctest.Wait()
		if got := f.texts(); len(got) != 2 || len(waits(t, dir)) > 0 {
			t.Errorf("%q; there is %q", got, waits(t, dir))
		}
		n.Close()
	})
}

// The outbox limits the number and age of messages. Messages of unknown channels expire, too.
func TestOutboxBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var log bytes.Buffer
		for range 3 {
			n := open(dir, &log, &fake{place: "a", block: true})
			for i := range queued {
				n.Ended(ended(fmt.Sprint(i), journal.Failed, true))
			}
			n.Close()
		}
		names := waits(t, dir)
		if len(names) != queued || !strings.Contains(log.String(), errFull.Error()) {
			t.Fatalf("%d wait\n%s", len(names), log.String())
		}
		for _, name := range []string{disk.TempPrefix + "1", "other-1" + messageSuffix + damaged} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		for _, name := range names[1:] {
			old := time.Now().Add(-outboxAge)
			if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
		f := &fake{place: "a"}
		n := open(dir, &log, f)
		n.Close()
		if got := f.texts(); len(got) != 1 || len(waits(t, dir)) > 0 || !strings.Contains(log.String(), "older than a week") {
			t.Errorf("%q; there is %q\n%s", got, waits(t, dir), log.String())
		}
	})
}

// A torn, garbled or irregular file is set aside and named in the log. It does not delay other messages.
func TestDamagedOutbox(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log bytes.Buffer
	f := &fake{place: "a"}
	box := newOutbox(dir, f)
	if err := box.add(Message{ID: "1", Text: "whole"}); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"1": `{"id":"2","text":"torn`, "2": "", "3": "{}", "4": "\x00\x00\x00", "5": `{"id":"5","text":"` + strings.Repeat("x", outboxSize) + `"}`}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, box.channel+name+messageSuffix), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "other-1"+messageSuffix), nil, 0o600); err != nil { // another channel's file
		t.Fatal(err)
	}
	n := open(dir, &log, f)
	n.Close()
	want := []string{"other-1" + messageSuffix}
	for name := range texts {
		aside := box.channel + name + messageSuffix + damaged
		want = append(want, aside)
		if !strings.Contains(log.String(), filepath.Join(dir, aside)) {
			t.Errorf("%s is not named\n%s", aside, log.String())
		}
	}
	slices.Sort(want)
	if got := waits(t, dir); !slices.Equal(got, want) || !slices.Equal(f.texts(), []string{"whole"}) {
		t.Errorf("%q, want %q; sent %q", got, want, f.texts())
	}
}

// Messages that cannot be stored are sent once, and logged.
func TestNoOutbox(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	f := &fake{place: "a"}
	n := open(filepath.Join(file, "outbox"), &log, f)
	n.Ended(ended("x", journal.Failed, true))
	n.Close()
	if len(f.got) != 1 || !strings.Contains(log.String(), "notification not stored: sent once from memory") {
		t.Errorf("%+v\n%s", f.got, log.String())
	}
}
