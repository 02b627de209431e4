package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Doctor reports files that were put aside until a person deletes them.
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
	if got := m.run(t, nil, "doctor", "--sandbox=none"); !strings.Contains(got.stdout, "1 worktree moved aside") || !strings.Contains(got.stdout, "/kept\n") {
		t.Errorf("%+v", got)
	}
}

// Doctor reports an old lock on the index of the checkout, and the command that removes it.
func TestDoctorNamesAnOldIndexLock(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	lock := filepath.Join(m.repo, ".git", "index.lock")
	for _, age := range []time.Duration{0, time.Hour} {
		m.write(t, ".git/index.lock", "")
		if at := time.Now().Add(-age); os.Chtimes(lock, at, at) != nil {
			t.Fatal("the age is not set")
		}
		got := m.run(t, nil, "doctor", "--sandbox=none")
		if strings.Contains(got.stdout, "rm ROOT/repo/.git/index.lock") != (age > 0) || strings.Contains(got.stdout, "leftovers     none") != (age == 0) {
			t.Errorf("age %s: %+v", age, got)
		}
	}
}

// Doctor does not tell a person to remove the lock of a killed merge, which may have left files: the repair undoes them.
func TestLockOfAKilledMerge(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	m.write(t, ".git/index.lock", fmt.Sprintf("ralph moves refs/heads/main from %[1]s to %[1]s\n", m.git(t, "rev-parse", "HEAD")))
	m.git(t, "switch", "-q", "-c", "feature")
	lock := filepath.Join(m.repo, ".git", "index.lock")
	if at := time.Now().Add(-time.Hour); os.Chtimes(lock, at, at) != nil {
		t.Fatal("the age is not set")
	}
	got := m.run(t, nil, "doctor", "--sandbox=none")
	if strings.Contains(got.stdout, "rm ROOT") || !strings.Contains(got.stdout, "lock of a killed merge: ROOT/repo/.git/index.lock") {
		t.Errorf("%+v", got)
	}
	got = m.run(t, nil, "clean", "--repair")
	if _, err := os.Lstat(lock); !strings.Contains(got.stdout, "removed") || err == nil {
		t.Errorf("%+v", got)
	}
}

// Doctor reports a remote that is not available once, and names the remote once.
func TestDoctorReportsARemoteOnce(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	m.git(t, "remote", "add", "origin", m.root+"/gone")
	got := m.run(t, nil, "doctor", "--sandbox=none", "--agent-command=true")
	want := "fail  claims        remote is not available: origin: git ls-remote: 'ROOT/gone' does not appear to be a git repository\n"
	if !strings.Contains(got.stdout, want) || strings.Count(got.stdout, "remote is not available") != 1 {
		t.Errorf("got %+v", got)
	}
}
