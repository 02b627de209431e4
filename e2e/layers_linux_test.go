package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// A repository with many files is checked out once for all runs: for the gate on the base, for a run in which ralph is
// killed, for the run that continues it, and for the verification of its commits.
func TestLayers(t *testing.T) {
	t.Parallel()
	temp := privateTemp(t)
	s, r := newScene(t, doIt), newRepository(t)
	for i := range 2000 {
		r.write(t, fmt.Sprintf("many/%d/%d.txt", i%40, i), fmt.Sprintln(i))
	}
	r.write(t, ".gitignore", "up.txt\n")
	r.commit(t, "many files")
	key := r.backlog(t, 1)[0]
	const agent = `set -e
		test -z "$(git status --porcelain)"
		if [ -e one.txt ]; then
			test ! -e many/1/1.txt; rm -r many/2; echo more >>many/3/3.txt; git add -A; git commit -qm Two; echo "<promise>COMPLETE</promise>"; exit
		fi
		echo one >one.txt; rm many/1/1.txt; git add -A; git commit -qm One; echo draft >many/4/4.txt; touch up.txt; exec sleep 1000`
	env := []string{
		"RALPH_SANDBOX=native", "TMPDIR=" + temp, "RALPH_AGENT_COMMAND=sh -c '" + agent + "'",
		`RALPH_GATE=test -f many/5/5.txt && test "$(ls many/3 | wc -l)" = 50`,
	}
	p := s.start(t, r, env, "work")
	var up []string
	await(t, "the agent to commit", func() (there bool) {
		var err error
		up, err = filepath.Glob(s.path("state/*/*/worktrees/*/files/up.txt"))
		return err == nil && len(up) > 0
	})
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.end(t)
	upper, err := filepath.Glob(filepath.Join(filepath.Dir(up[0]), "many/*/*"))
	if err != nil || len(upper) != 2 { // a whiteout and a draft
		t.Errorf("the run has %d of the files for itself, %v", len(upper), err)
	}
	if got := s.start(t, r, env, "work").end(t); got != 0 {
		t.Errorf("status %d:\n%s", got, r.issue(t, key))
	}
	if got := r.lines(t, "diff", "--stat=200", "main", "ralph/"+key); !strings.Contains(got[len(got)-1], "53 files changed, 2 insertions(+), 51 deletions(-)") {
		t.Errorf("the commits: %q", got)
	}
	if got := r.lines(t, "show", "refs/ralph/wip/"+key+":many/4/4.txt"); len(got) != 1 || got[0] != "draft" {
		t.Errorf("the draft is %q", got)
	}
	layers := func() int {
		all, err := filepath.Glob(s.path("state/ralph/*/layers/*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	if n := layers(); n != 1 {
		t.Errorf("%d checkouts of the base", n)
	}
	doctor := s.start(t, r, env, "doctor")
	doctor.end(t)
	if out := doctor.out.String(); !strings.Contains(out, "overlays on a shared checkout of the base") {
		t.Errorf("ralph doctor:\n%s", out)
	}
	if got := s.start(t, r, env, "clean").end(t); got != 0 || layers() != 1 {
		t.Errorf("ralph clean: status %d, %d checkouts of the base", got, layers())
	}
	if got := s.start(t, r, env, "clean", "--caches").end(t); got != 0 || layers() > 0 {
		t.Errorf("ralph clean --caches: status %d, %d checkouts of the base", got, layers())
	}
	off := s.start(t, r, append(env, "RALPH_LAYER_MAX_MB=0"), "doctor")
	off.end(t)
	if out := off.out.String(); !strings.Contains(out, "each is a separate checkout: layer-max-mb is 0") {
		t.Errorf("ralph doctor:\n%s", out)
	}
	noneLeft(t, s.mark)
}
