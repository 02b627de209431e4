package cli

import (
	"strings"
	"testing"
)

// TestDoctorSeesSubmodules: whose folders are empty in a worktree, unless a command brings them.
func TestDoctorSeesSubmodules(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\n---\n")
	m.write(t, ".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ../sub.git\n")
	m.commit(t)
	args := []string{"doctor", "--sandbox=none", "--agent-command=true"}
	if got := m.run(t, nil, args...); !strings.Contains(got.stdout, "warn  submodules    their folders are empty in worktrees") {
		t.Errorf("got %+v", got)
	}
	for _, by := range []string{"--setup", "--before"} {
		if got := m.run(t, nil, append(args, by, "git submodule update --init")...); !strings.Contains(got.stdout, "ok    submodules") {
			t.Errorf("%s: %+v", by, got)
		}
	}
}

func TestScriptOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"./check.sh --all": "check.sh", "sh ci/check.sh": "ci/check.sh", "bash -c 'x/y'": "", "go test ./...": "", "": "",
		"/usr/bin/make x": "", "../up.sh": "", "$HOME/x.sh": "", "a/../b/c.sh": "b/c.sh", "sh": "",
	} {
		if got := scriptOf(in); got != want {
			t.Errorf("scriptOf(%q) = %q, want %q", in, got, want)
		}
	}
}
