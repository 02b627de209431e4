package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files that were put aside are named until a person has looked.
func TestDoctorNamesWhatWasPutAside(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	if got := m.run(t, nil, "doctor", "--sandbox=none"); !strings.Contains(got.stdout, "leftovers     none") {
		t.Fatalf("%+v", got)
	}
	states, err := filepath.Glob(filepath.Join(m.home, ".local", "state", "ralph", "repo-*"))
	if err != nil || len(states) != 1 {
		t.Fatal(states, err)
	}
	if err := os.MkdirAll(filepath.Join(states[0], "kept", "a-0123456789-X"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := m.run(t, nil, "doctor", "--sandbox=none"); !strings.Contains(got.stdout, "1 worktree put aside") || !strings.Contains(got.stdout, "/kept\n") {
		t.Errorf("%+v", got)
	}
}
