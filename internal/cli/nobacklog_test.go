package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// TestNoBacklog checks that a repository without a backlog gets the hint to run init.
func TestNoBacklog(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	work := m.run(t, nil, "work", "--sandbox=none", "--skip-permissions", "--agent-command=true")
	if want := "/.ralph/backlog: no such folder\nralph: set the repository up with: ralph init; if .ralph/config.yaml exists already, create that folder\n"; work.status != exit.Usage || !strings.HasSuffix(work.stderr, want) {
		t.Errorf("work: %+v", work)
	}
	if doctor := m.run(t, nil, "doctor"); !strings.Contains(doctor.stdout, "fix: set the repository up with: ralph init; if .ralph/config.yaml exists already, create that folder\n") {
		t.Errorf("doctor: %+v", doctor)
	}
}

// TestOtherTrackerOfTheService checks the warning if the user's file of projects names another tracker than the commands use.
// Whether a service uses that file is unknown.
func TestOtherTrackerOfTheService(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	m.own(t, "")
	list := filepath.Join(m.home, ".config", "ralph", "serve.yaml")
	for tracker, want := range map[string]bool{"github": true, "local": false} {
		if err := os.WriteFile(list, []byte("projects:\n  - {repo: "+m.repo+", tracker: "+tracker+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		status, doctor := m.run(t, nil, "status", "17"), m.run(t, nil, "doctor")
		for _, text := range []string{status.stderr, doctor.stdout} {
			text = strings.Join(strings.Fields(text), " ")
			if strings.Contains(text, "serve.yaml uses tracker github") != want {
				t.Errorf("%s:\n%s", tracker, text)
			}
		}
	}
}
