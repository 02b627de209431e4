package events_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/pool/run/internal/events"
	"github.com/ralph-pool/ralph/tracker"
)

// Every text of others in an event is redacted before anybody sees it.
func TestEventsAreRedacted(t *testing.T) {
	t.Parallel()
	const value = "a-value-to-be-kept"
	s := &events.Source{Pool: "p", Secrets: redact.New(value)}
	check := loop.Check{Command: "echo " + value, Tail: value}
	e := s.Stamp(journal.Event{
		Kind: journal.EventGate, Text: value, Title: "t " + value, Reason: &journal.Reason{Detail: value, Unfit: tracker.Unfit{Detail: value}}, Check: &check,
		Skip: &journal.Skip{Detail: value},
	})
	for _, text := range []string{e.Text, e.Title, e.Reason.Detail, e.Reason.Unfit.Detail, e.Check.Command, e.Check.Tail, e.Skip.Detail} {
		if text != redact.Text {
			t.Errorf("%q is shown", text)
		}
	}
	if !strings.Contains(check.Tail, value) {
		t.Error("the caller's check was changed")
	}
	if e := s.Stamp(journal.Event{Title: "a\x1b[31m\x00 title\n\twith\u202e lines"}); e.Title != "a[31m title with lines" {
		t.Errorf("%q is shown", e.Title)
	}
	if next := s.Stamp(journal.Event{Kind: journal.EventAgent}); e.Seq != 1 || next.Seq != 3 || e.Pool != "p" || e.Time.IsZero() {
		t.Errorf("%+v, then %+v", e, next)
	}
}

// Events of a run from several goroutines are delivered in the order of their numbers.
func TestEventsComeInOrder(t *testing.T) {
	t.Parallel()
	last := uint64(0)
	s := &events.Source{Secrets: redact.New(), Emit: func(e journal.Event) {
		if e.Seq <= last {
			t.Errorf("event %d comes after %d", e.Seq, last)
		}
		last = e.Seq
	}}
	l := s.New(journal.Run{Dir: t.TempDir()}, slog.New(slog.DiscardHandler))
	if err := l.Open(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				l.Emit(journal.Event{Kind: journal.EventAgent})
			}
		})
	}
	all.Wait()
	l.Close()
	if last < 1600 {
		t.Errorf("the last is %d", last)
	}
}

// Several goroutines may observe a run's loops.
func TestLoopsOfSeveralGoroutines(t *testing.T) {
	t.Parallel()
	n := 0
	s := &events.Source{Secrets: redact.New(), Emit: func(journal.Event) { n++ }}
	l := s.New(journal.Run{}, slog.New(slog.DiscardHandler))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				l.Observe(loop.Event{Kind: loop.EventAgent, Iteration: 1, Agent: &agents.Event{Kind: agents.EventMessage, Text: "x"}}, "")
			}
		})
	}
	all.Wait()
	if n != 2001 {
		t.Errorf("%d events, want 2000 and a notice", n)
	}
}

// A log without a folder passes events on, and stores nothing.
func TestLogWithoutAFolder(t *testing.T) {
	t.Parallel()
	n := 0
	s := &events.Source{Secrets: redact.New(), Emit: func(journal.Event) { n++ }}
	l := s.New(journal.Run{}, slog.New(slog.DiscardHandler))
	l.Note("x")
	l.StopObeyed()
	if n != 1 {
		t.Errorf("%d events", n)
	}
	if w, err := l.Stream("x.log"); err == nil {
		t.Errorf("a stream without a folder: %v", w)
	}
	l.Close()
}
