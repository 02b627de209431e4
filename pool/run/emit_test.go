package run

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/tracker"
)

// What the agent uses to log in is redacted.
func TestCredentialsAreRedacted(t *testing.T) {
	t.Parallel()
	s := redact.New()
	x := &execution{c: &Config{
		Agent: agents.Claude{}, Secrets: s, Network: gateway.Network{User: agents.User{Env: []string{"ANTHROPIC_API_KEY=the-key-of-the-user"}}},
	}}
	x.addSecrets()
	if !s.In("the-key-of-the-user") {
		t.Error("the agent's own key is not redacted")
	}
}

// Every text of others in an event is redacted before anybody sees it.
func TestEventsAreRedacted(t *testing.T) {
	t.Parallel()
	const value = "a-value-to-be-kept"
	r := &Runner{c: Config{Name: "p", Secrets: redact.New(value)}}
	check := loop.Check{Command: "echo " + value, Tail: value}
	e := r.Stamp(journal.Event{
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
	if e := r.Stamp(journal.Event{Title: "a\x1b[31m\x00 title\n\twith\u202e lines"}); e.Title != "a[31m title with lines" {
		t.Errorf("%q is shown", e.Title)
	}
	if next := r.Stamp(journal.Event{Kind: journal.EventAgent}); e.Seq != 1 || next.Seq != 3 || e.Pool != "p" || e.Time.IsZero() {
		t.Errorf("%+v, then %+v", e, next)
	}
}

// Events of a run that come from several goroutines are passed on in the order of their numbers.
func TestEventsComeInOrder(t *testing.T) {
	t.Parallel()
	last := uint64(0)
	r := &Runner{c: Config{Secrets: redact.New(), Emit: func(e journal.Event) {
		if e.Seq <= last {
			t.Errorf("event %d comes after %d", e.Seq, last)
		}
		last = e.Seq
	}}}
	folder, err := journal.OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	x := &execution{r: r, c: &r.c, folder: folder, log: slog.New(slog.DiscardHandler)}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				x.emit(journal.Event{Kind: journal.EventAgent})
			}
		})
	}
	all.Wait()
	if err := folder.Close(); err != nil || last < 1600 {
		t.Errorf("the last is %d; %v", last, err)
	}
}
