package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNewNamesALabelOnce also where it is asked for and the pick-up label.
func TestNewNamesALabelOnce(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/.keep", "")
	if got := m.run(t, nil, "new", "Title", "--label", "no-human", "--label", "x"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	files, _ := filepath.Glob(filepath.Join(m.repo, ".ralph/backlog/*.md"))
	if len(files) != 1 {
		t.Fatalf("got %v", files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(text), "labels: [no-human, x]\n") {
		t.Errorf("%v: %s", err, text)
	}
}

// TestDoctorOnDetachedHead says how to get on a branch.
func TestDoctorOnDetachedHead(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/.keep", "")
	m.commit(t)
	if out, err := exec.CommandContext(t.Context(), "git", "-C", m.repo, "checkout", "--quiet", "--detach").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := m.run(t, nil, "doctor")
	if text := strings.Join(strings.Fields(got.stdout), " "); !strings.Contains(text, "fix: check a branch out with: git switch BRANCH") {
		t.Errorf("%+v", got)
	}
}
