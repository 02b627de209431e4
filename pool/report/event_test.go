package report

import (
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/sandboxes"
)

// A very talkative agent fills neither the event log nor the observer, but its last action stays current: after the limit one
// notice says that there is more, and only some of its lines are shown.
func TestTalkIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	l := Loops{now: func() time.Time { return now }}
	say := func(iteration int, text string) loop.Event {
		return loop.Event{Kind: loop.EventAgent, Iteration: iteration, Agent: &agents.Event{Text: text}}
	}
	shown, notices := 0, 0
	for range 3 * chatterLimit {
		if e, ok := l.Event(say(1, "x")); ok {
			shown++
			if e.Source == "notice" {
				notices++
			}
		}
	}
	if shown != chatterLimit+1 || notices != 1 {
		t.Errorf("%d shown, %d notices", shown, notices)
	}
	for range 3 {
		now = now.Add(chatterPause)
		if e, ok := l.Event(say(1, "y")); !ok || e.Text != "y" || e.Source == "notice" {
			t.Errorf("after a pause: %+v, %t", e, ok)
		}
		if e, ok := l.Event(say(1, "z")); ok {
			t.Errorf("at the same time: %+v", e)
		}
	}
	if e, ok := l.Event(say(2, "x")); !ok || e.Text != "x" {
		t.Error("the next iteration does not start anew")
	}
	if _, ok := l.Event(say(3, "")); ok {
		t.Error("an event without text is shown")
	}
}

// The end of an iteration names its session, into which an agent may have written a secret.
func TestSessionOfIteration(t *testing.T) {
	t.Parallel()
	var l Loops
	e, ok := l.Event(loop.Event{Kind: loop.EventEnded, Result: &loop.Iteration{Agent: "claude", Model: "opus", Session: "a-secret-of-ours-0123456789"}})
	if e = RedactedEvent(e, redact.New("a-secret-of-ours-0123456789")); !ok || e.Agent != "claude" || e.Model != "opus" || e.Session != redact.Text {
		t.Errorf("%+v", e)
	}
	e = RedactedEvent(journal.Event{Kind: journal.EventWarning, Subject: sandboxes.Subject{Host: "a-secret-of-ours-0123456789"}}, redact.New("a-secret-of-ours-0123456789"))
	if e.Host != redact.Text {
		t.Errorf("%+v", e)
	}
}

// The end of a killed agent is described once. After an agent that ended by itself, the following event says more.
func TestHowAnIterationEnded(t *testing.T) {
	t.Parallel()
	silent := &agents.Failure{Class: agents.Killed, Message: "killed after 40s without output"}
	for _, c := range []struct {
		it             loop.Iteration
		event, failure string
	}{
		{loop.Iteration{Ending: loop.EndingExit}, "", ""},
		{loop.Iteration{Ending: loop.EndingIdle, Failure: silent}, silent.Message, silent.Message},
		{loop.Iteration{Ending: loop.EndingRun}, "killed, because the run took too long", ""},
		{loop.Iteration{Ending: loop.EndingExit, Failure: &agents.Failure{Class: agents.Auth, Message: "log in"}}, "", "auth: log in"},
	} {
		var l Loops
		if e, ok := l.Event(loop.Event{Kind: loop.EventEnded, Text: string(c.it.Ending), Result: &c.it}); !ok || e.Text != c.event {
			t.Errorf("%s: %q, want %q", c.it.Ending, e.Text, c.event)
		}
		if c.it.Failure != nil && Failure(c.it.Failure) != c.failure {
			t.Errorf("%q, want %q", Failure(c.it.Failure), c.failure)
		}
	}
}
