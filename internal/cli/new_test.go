package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// TestNewInOtherScripts: titles whose letters cannot be in a key have keys that tell them apart, and not by their order.
func TestNewInOtherScripts(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/.keep", "")
	var keys []string
	for _, title := range []string{"ログインを直す", "検索を速くする", "ログインを直す"} {
		got := m.run(t, nil, "new", title)
		if !regexp.MustCompile(`^issue-[0-9a-f]{8}(-2)?\n$`).MatchString(got.stdout) {
			t.Fatalf("%s: %+v", title, got)
		}
		keys = append(keys, strings.TrimSpace(got.stdout))
	}
	if keys[0] == keys[1] || keys[2] != keys[0]+"-2" {
		t.Errorf("keys %v", keys)
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
