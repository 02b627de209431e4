package progress

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Output for logs and programs is never shortened. On a terminal a command to copy is on a line of its own, also complete.
func TestHintIsNeverCut(t *testing.T) {
	t.Parallel()
	reason := strings.Repeat("The agent is not logged in. ", 10) + "log in with claude"
	command := "test " + strings.Repeat("a", 100)
	title := strings.Repeat("title ", 20) + "end"
	events := []journal.Event{
		{Kind: journal.EventStarted, Key: "k", Title: title},
		{Kind: journal.EventGate, Key: "k", Check: &loop.Check{Command: command, ExitCode: 1}},
		{Kind: journal.EventAgent, Key: "k", Text: reason},
		{Kind: journal.EventEnded, Key: "k", Outcome: journal.Failed, Branch: "ralph/k", Reason: &journal.Reason{Code: journal.ReasonLoop, Detail: reason}},
	}
	for terminal, want := range map[bool]string{
		false: "k  started  " + title + "\nk  gate failed  in the worktree, 0s: " + command + "\nk  agent  " + reason + "\n" +
			"k  failed  no commits, 0s: " + reason + "\n",
		true: "k  started  " + screen.Shorten(title, 70) + "\nk  gate failed  in the worktree, 0s: " + command + "\nk  agent  " + screen.Shorten(reason, 160) + "\n" +
			"k  failed  no commits, 0s:\n  " + reason + "\n",
	} {
		var errs bytes.Buffer
		view := View{UI: screen.New(&bytes.Buffer{}, &errs, nil), Name: func(key string) string { return key }}
		view.UI.Configure("never", false, true)
		view.UI.Terminal = terminal
		for _, e := range events {
			view.Event(e)
		}
		if errs.String() != want {
			t.Errorf("terminal %v:\n%s\nwant\n%s", terminal, errs.String(), want)
		}
	}
}

// Each run of setup and gate is one line with place and time, even if two runs are on.
func TestEachPassIsToldApart(t *testing.T) {
	t.Parallel()
	check := func(run string, kind journal.EventKind, at journal.Place, exit int, took time.Duration) []journal.Event {
		e := journal.Event{Kind: kind, Run: run, Key: run, Place: at, Text: "line"}
		over := e
		over.Check = &loop.Check{Command: "line", ExitCode: exit, Duration: took}
		return []journal.Event{e, over}
	}
	var events []journal.Event
	add := func(e ...journal.Event) { events = append(events, e...) }
	add(check("a", journal.EventSetup, journal.PlaceBase, 0, time.Second)...)
	add(check("a", journal.EventGate, journal.PlaceBase, 0, 2*time.Second)...)
	add(check("a", journal.EventGate, journal.PlaceBase, 0, 3*time.Second)...)
	add(journal.Event{Kind: journal.EventStarted, Run: "a", Key: "a", Title: "A"})
	add(check("a", journal.EventSetup, journal.PlaceWorktree, 0, time.Second)...)
	add(check("b", journal.EventGate, journal.PlaceWorktree, 0, time.Minute)...)
	add(journal.Event{Kind: journal.EventNote, Run: "a", Key: "a", Text: "waits"})
	add(journal.Event{Kind: journal.EventIteration, Run: "a", Key: "a", Iteration: 1}, journal.Event{Kind: journal.EventUsage, Run: "a", Key: "a", Iteration: 1, Elapsed: 90, Text: "killed after 40s without output"})
	add(check("a", journal.EventGate, journal.PlaceWorktree, 0, time.Second)...)
	add(check("a", journal.EventGate, journal.PlaceWorktree, 1, time.Second)...)
	add(journal.Event{Kind: journal.EventIteration, Run: "a", Key: "a", Iteration: 2}, journal.Event{Kind: journal.EventUsage, Run: "a", Key: "a", Iteration: 2, Elapsed: 4})
	add(check("a", journal.EventGate, journal.PlaceWorktree, 0, 4*time.Second)...)
	add(check("a", journal.EventGate, journal.PlaceCheckout, 0, 5*time.Second)...)
	add(journal.Event{Kind: journal.EventNote, Run: "a", Key: "a", Text: "the gate runs once more, with a canary"})
	add(check("a", journal.EventSetup, journal.PlaceCheckout, 0, time.Second)...) // the base has moved
	add(check("a", journal.EventGate, journal.PlaceCheckout, 0, 6*time.Second)...)
	add(journal.Event{Kind: journal.EventStage, Run: "a", Key: "a", Stage: journal.StagePublish}, journal.Event{Kind: journal.EventEnded, Run: "b", Key: "b", Outcome: journal.NoChange, Branch: "ralph/b"})
	want := `a  gate passed  on the base, 5s (setup 1s)
a  started  A
a  setup  in the worktree, 1s
a  note  waits
a  iteration 1  1m30s: killed after 40s without output
a  gate failed  in the worktree, 2s: line
a  iteration 2  4s
a  gate passed  in the worktree, 4s
a  gate passed  on a clean checkout, 5s
a  note  the gate runs once more, with a canary
a  gate passed  on a clean checkout, 6s (setup 1s)
b  gate passed  in the worktree, 1m0s
b  no-change  no commits, 0s
`
	var errs bytes.Buffer
	view := View{UI: screen.New(&bytes.Buffer{}, &errs, nil), Name: func(key string) string { return key }}
	for _, e := range events {
		view.Event(e)
	}
	if diff := cmp.Diff(want, errs.String()); diff != "" {
		t.Error(diff)
	}
}

// The memory of reasons is bounded, because a service's view lives long, and it always contains the latest reason.
func TestToldIsBounded(t *testing.T) {
	t.Parallel()
	v := &View{UI: screen.New(&bytes.Buffer{}, &bytes.Buffer{}, nil), Name: func(key string) string { return key }}
	var last journal.Event
	for n := range 10*toldMost + 1 {
		last = journal.Event{Kind: journal.EventEnded, Key: "k", Outcome: journal.EnvironmentUnavailable, Reason: &journal.Reason{Code: journal.ReasonLoop, Detail: fmt.Sprint(n)}}
		v.Event(last)
	}
	if len(v.told) > toldMost || v.Told(look.ReasonOf(last)) != "k" {
		t.Errorf("%d reasons are remembered", len(v.told))
	}
}
