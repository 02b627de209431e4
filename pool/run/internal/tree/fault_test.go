package tree

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree/git"
)

// A lack of the machine is no failure of the issue that met it first.
func TestFaultOfTheMachine(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]journal.FaultKind{
		fmt.Errorf("git status: %w", unix.EAGAIN):   journal.FaultSandbox,
		fmt.Errorf("write: %w", unix.ENOSPC):        journal.FaultSandbox,
		fmt.Errorf("fetch: %w", &disk.ShortError{}): journal.FaultSandbox,
		errors.New("a branch of this name exists"):  journal.FaultOther,
		// Commits of an agent can cause git's message and exit status.
		&git.Error{ExitCode: 128, Stderr: "fatal: unable to create file cannot fork: File name too long"}: journal.FaultOther,
		&git.Error{ExitCode: -1}: journal.FaultOther,
	} {
		if got := FaultOf(err, false); got.Kind != want || got.Text != err.Error() {
			t.Errorf("%v: %+v, want %s", err, got, want)
		}
	}
}
