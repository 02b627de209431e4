package cli

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// TestNoBacklog: who has not set the repository up is told how.
func TestNoBacklog(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	work := m.run(t, nil, "work", "--sandbox=none", "--skip-permissions", "--agent-command=true")
	if want := "/.ralph/backlog: no such folder\nralph: set the repository up with: ralph init; where .ralph/config.yaml is already, make that folder\n"; work.status != exit.Usage || !strings.HasSuffix(work.stderr, want) {
		t.Errorf("work: %+v", work)
	}
	if doctor := m.run(t, nil, "doctor"); !strings.Contains(doctor.stdout, "fix: set the repository up with: ralph init; where .ralph/config.yaml is already, make that folder\n") {
		t.Errorf("doctor: %+v", doctor)
	}
}
