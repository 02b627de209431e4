package progress

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/internal/cli/clitest"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/journal"
)

// On a terminal plain lines break between words. A command to copy is not broken.
func TestLinesFitTheTerminal(t *testing.T) {
	t.Parallel()
	tty, shown := clitest.Terminal(t, 40)
	view := View{UI: screen.New(&bytes.Buffer{}, tty, nil), Name: func(key string) string { return key }}
	view.UI.Configure("always", false, false)
	reason := &journal.Reason{Code: journal.ReasonLoop, Detail: "the agent is not logged in; log in with `claude auth login`"}
	view.Event(journal.Event{Kind: journal.EventNote, Key: "fix", Text: "the gate runs once more, with a canary: 登录页面忘记了用户名"})
	view.Event(journal.Event{Kind: journal.EventEnded, Key: "fix", Outcome: journal.Failed, Branch: "ralph/fix", Reason: reason})
	view.UI.Note("end")
	want := "\x1b[1mfix\x1b[0m  \x1b[2mnote\x1b[0m  the gate runs once more, with\n  a canary: 登录页面忘记了用户名\n" +
		"\x1b[1mfix\x1b[0m  \x1b[31mfailed\x1b[0m  no commits, 0s:\n  the agent is not logged in; log in\n  with `claude auth login`\nend\n"
	if diff := cmp.Diff(want, clitest.Shown(t, shown, "end\n")); diff != "" {
		t.Error(diff)
	}
}
