package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ralph-pool/ralph/pool/redact"
)

// TestCutOutputIsTold checks that the log names the file of a check's output that was cut off.
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

// The output of a check is printed while the check runs, and only once.
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
