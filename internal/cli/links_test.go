package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// TestLinksOutOfTheRepository checks that links at or below .ralph do not lead ralph out of the repository.
func TestLinksOutOfTheRepository(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "../elsewhere/one.md", "---\ntitle: One\nlabels: [no-human]\n---\nSECRET\n")
	m.write(t, "../elsewhere/prompt.md", "SECRET\n")
	m.write(t, ".ralph/real/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.commit(t)
	link := func(to, name string) {
		_ = os.Remove(filepath.Join(m.repo, name))
		if err := os.Symlink(to, filepath.Join(m.repo, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("../../elsewhere", ".ralph/backlog")
	const backlog = "local.dir: ROOT/repo/.ralph/backlog leads out of the repository, to ROOT/elsewhere; " +
		"if you mean that, give --local-dir\n"
	for _, args := range [][]string{{"work", "--dry-run"}, {"work"}, {"prompt", "one"}, {"status"}, {"show", "one"}} {
		if got := m.run(t, nil, args...); got.status != exit.Usage || got.stderr != "ralph: "+backlog || got.stdout != "" {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if got := m.run(t, nil, "doctor"); got.status != exit.Usage || !strings.Contains(got.stdout, backlog) {
		t.Errorf("doctor: %+v", got)
	}
	if got := m.run(t, nil, "__completeNoDesc", "show", ""); strings.Contains(got.stdout, "one") {
		t.Errorf("completion: %+v", got)
	}
	given := []string{"prompt", "one", "--local-dir=.ralph/backlog", "--agent-command=true"}
	if got := m.run(t, nil, given...); got.status != 0 || !strings.Contains(got.stdout, "SECRET") {
		t.Errorf("by a flag: %+v", got)
	}
	link("real", ".ralph/backlog")
	link("../../elsewhere/prompt.md", ".ralph/prompt.md")
	want := "ralph: prompt-file: ROOT/repo/.ralph/prompt.md leads out of the repository, " +
		"to ROOT/elsewhere/prompt.md; if you mean that, give --prompt-file\n"
	for _, args := range [][]string{{"prompt", "one"}, {"prompt", "one", "--prompt-file="}} {
		got := m.run(t, nil, append(args, "--agent-command=true")...)
		if got.status != exit.Usage || got.stderr != want || got.stdout != "" {
			t.Errorf("%v: %+v", args, got)
		}
	}
	// Trust covers a path in the repository, but not a later link at that path.
	m.write(t, ".ralph/config.yaml", "mounts: ['host=data,inside=/data']\n")
	m.trust(t)
	link("../elsewhere", "data")
	want = "ralph: ROOT/repo/.ralph/config.yaml:1: mounts: ROOT/repo/data leads out of the repository, " +
		"to ROOT/elsewhere; if you mean that, give --mount\n"
	if got := m.run(t, nil, "sandbox", "exec", "--sandbox=docker", "--", "true"); got.status != exit.Usage || got.stderr != want {
		t.Errorf("mounts: %+v", got)
	}
	got := m.run(t, nil, "sandbox", "exec", "--sandbox=docker", "--mount=host="+m.repo+"/data", "--", "true")
	if strings.Contains(got.stderr, "leads out") {
		t.Errorf("mounts by a flag: %+v", got)
	}
}
