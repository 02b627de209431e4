package e2e

import (
	"os"
	"testing"
)

// Content that only a merge commit of the agent has (a file from the other parent, or a resolved conflict) reaches the base,
// even if the base has moved meanwhile.
func TestAgentsMergesArePublishedWhole(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]string{
		"a file": `
git switch -qc side; echo side >side.txt; git add side.txt; git commit -qm side; git switch -q -
echo agent >f.txt; git commit -qam mine
git merge -q --no-commit --no-ff side; echo both >f.txt; echo only >inmerge.txt; git add -A; git commit -qm "merge side"
`,
		"a conflict": `
echo agent >f.txt; git commit -qam mine
(cd "$CLONE"; echo person >f.txt; git commit -qam theirs)
git merge -q main || true
echo both >f.txt; echo only >inmerge.txt; git add -A; git commit -qm "merge main"
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, r := newScene(t, doIt), newRepository(t)
			script := "set -e\nCLONE='" + string(r) + "'\n" + work + `(cd "$CLONE"; echo more >g.txt; git add g.txt; git commit -qm elsewhere)` + "\n"
			agent := "issues:\n  \"*\":\n    - - run: sh '" + s.path("work.sh") + "'\n      - say: <promise>COMPLETE</promise>\n"
			for path, text := range map[string]string{s.path("work.sh"): script, s.path("agent.yaml"): agent} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r.write(t, "f.txt", "old\n")
			keys := r.backlog(t, 1)
			s.sweep(t, r, 0, "--publish", "merge")
			for path, want := range map[string]string{"f.txt": "both", "inmerge.txt": "only", "g.txt": "more"} {
				if got := r.git(t, "show", "main:"+path); got != want {
					t.Errorf("main has %q in %s, want %q", got, path, want)
				}
			}
			if n := s.starts(t)[keys[0]]; n != 1 {
				t.Errorf("%d runs, want one", n)
			}
		})
	}
}
