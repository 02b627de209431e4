package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/sandboxes"
)

// No line ends in a blank, whatever an event lacks.
func TestLogLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := compose.New(compose.Host{Stdout: &out, Stderr: &bytes.Buffer{}})
	for _, e := range []journal.Event{
		{Kind: journal.EventEnded, Outcome: journal.Succeeded}, {Kind: journal.EventEnded, Outcome: journal.Failed, Reason: &journal.Reason{Code: journal.ReasonLoop, Detail: "why"}}, {Kind: journal.EventAgent},
		{Kind: journal.EventWarning, Text: "sandbox: " + sandboxes.PIDsNotice(1, 9)}, {Kind: journal.EventWarning, Text: "sandbox: " + sandboxes.MemoryNotice(2, 64<<20)},
		{Kind: journal.EventUsage, Iteration: 2, Elapsed: 3, Usage: &agents.Usage{Input: 5, CacheRead: 6, Output: 7}},
	} {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := logLine(a, line, nil); err != nil {
			t.Fatal(err)
		}
	}
	time := out.String()[:8]
	if want := time + "  ended       succeeded\n" + time + "  ended       failed why\n" + time + "  agent\n" +
		time + "  warning     sandbox: 1 process was killed at the process limit of 9; raise pids if they need more\n" +
		time + "  warning     sandbox: 2 processes were killed at the memory limit of 64 MB; raise memory-mb if they need more\n" + time + "  iteration   2 ended after 3s; cost unknown; 5 tokens in, 6 from cache, 7 out\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestCutOutputIsTold: the log says which file lacks the end of what a check has printed.
func TestCutOutputIsTold(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.commit(t)
	gate := fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x | fold -w 60000; exit 1", redact.StreamLimit)
	m.run(t, nil, "work", "--sandbox=none", "--agent-command=false", "--commit-author=A <a@b.c>", "--gate", gate)
	const want = "warning     baseline-gate-0-1.log has the first 64 MiB of the output; 1118 more bytes were not kept\n"
	if got := m.run(t, nil, "logs", "one"); strings.Count(got.stdout, want) != 1 {
		t.Errorf("status %d, %d bytes: %.300s", got.status, len(got.stdout), got.stdout)
	}
}

// The output of a check is there while it runs, and only once.
func TestFollowedCheckIsPrintedAsItRuns(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.commit(t)
	step := filepath.Join(t.TempDir(), "step")
	gate := "echo begun; until [ -e " + step + " ]; do sleep 0.05; done; echo second; printf third; exit 127"
	var both sync.WaitGroup
	start := func(out, errs io.Writer, args ...string) {
		h := m.host(&bytes.Buffer{}, &bytes.Buffer{})
		h.Stdout, h.Stderr = out, errs
		both.Go(func() { Run(t.Context(), args, h) })
	}
	said, followed := newTranscript(), newTranscript()
	start(io.Discard, said, "work", "--sandbox=none", "--agent-command=false", "--commit-author=A <a@b.c>", "--gate", gate)
	said.until(t, "the gate runs on")
	start(followed, io.Discard, "logs", "-f", "one")
	followed.until(t, "                      begun\n")
	if err := os.WriteFile(step, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	both.Wait()
	got := followed.until(t, "ended ")
	const want = "\n                      begun\n                      second\n                      third\n"
	if strings.Count(got, want) != 1 || strings.Count(got, "begun\n") != 1 || !strings.Contains(got, "exit status 127\n") {
		t.Errorf("got %s", got)
	}
}
