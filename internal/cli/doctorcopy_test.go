package cli

import (
	"strings"
	"testing"
)

// TestDoctorLooksForWhatIsCopied checks that doctor reports missing files of the setting copy, without which no run can begin.
func TestDoctorLooksForWhatIsCopied(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.commit(t)
	args := []string{"--sandbox=none", "--skip-permissions", "--agent-command=true", "--copy=local.env", "--commit-author=A <a@b.c>"}
	const missing = `"local.env" is not in ROOT/repo`
	got := m.run(t, nil, append([]string{"doctor"}, args...)...)
	if got.status != 1 || !strings.Contains(got.stdout, "fail  copy          "+missing) || !strings.Contains(got.stdout, "fix: create it, or remove it from copy") {
		t.Errorf("got %+v", got)
	}
	got = m.run(t, nil, append([]string{"work", "--dry-run"}, args...)...)
	if !strings.Contains(got.stderr, "warning: copy: "+missing+"; create it, or remove it from copy\n") {
		t.Errorf("got %+v", got)
	}
	got = m.run(t, nil, append([]string{"work"}, args...)...)
	if !strings.Contains(got.stderr, "copy: "+missing+"; create it, or remove it from copy") {
		t.Errorf("got %+v", got)
	}
	m.write(t, "local.env", "A=1\n")
	if got := m.run(t, nil, append([]string{"doctor"}, args...)...); strings.Contains(got.stdout, "  copy  ") {
		t.Errorf("got %+v", got)
	}
}
