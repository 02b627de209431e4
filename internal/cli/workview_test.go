package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
)

// What a log or a program reads is whole; a person at a terminal gets what to type on a line of its own, whole too.
func TestWhatMendsIsNeverCut(t *testing.T) {
	t.Parallel()
	reason := strings.Repeat("The agent is not logged in. ", 10) + "log in with claude"
	command := "test " + strings.Repeat("a", 100)
	title := strings.Repeat("title ", 20) + "end"
	events := []pool.Event{
		{Kind: pool.EventStarted, Key: "k", Title: title},
		{Kind: pool.EventGate, Key: "k", Check: &loop.Check{Command: command, ExitCode: 1}},
		{Kind: pool.EventAgent, Key: "k", Text: reason},
		{Kind: pool.EventEnded, Key: "k", Outcome: pool.Failed, Branch: "ralph/k", Text: reason},
	}
	for terminal, want := range map[bool]string{
		false: "k  started  " + title + "\nk  gate failed  " + command + "\nk  agent  " + reason + "\n" +
			"k  failed  0 commits on ralph/k, 0s: " + reason + "\n",
		true: "k  started  " + shorten(title, 70) + "\nk  gate failed  " + command + "\nk  agent  " + shorten(reason, 160) + "\n" +
			"k  failed  0 commits on ralph/k, 0s:\n  " + reason + "\n",
	} {
		var errs bytes.Buffer
		view := workView{ui: newPrinter(Host{Stdout: &bytes.Buffer{}, Stderr: &errs}), name: func(key string) string { return key }}
		view.ui.configure("never", false, true)
		view.ui.terminal = terminal
		for _, e := range events {
			view.event(e)
		}
		if errs.String() != want {
			t.Errorf("terminal %v:\n%s\nwant\n%s", terminal, errs.String(), want)
		}
	}
}
