package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// TestUnendedOperation checks that an unfinished merge or the like in the checkout is refused before an agent is started,
// with the command that ends it: otherwise ralph's commits would contain it.
func TestUnendedOperation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, end string }{
		"merge":       {"git merge side", "git merge --continue, or git merge --abort"},
		"rebase":      {"git rebase side", "git rebase --continue, or git rebase --abort"},
		"old rebase":  {"git rebase --apply side", "git rebase --continue, or git rebase --abort"},
		"cherry-pick": {"git cherry-pick side", "git cherry-pick --continue, or git cherry-pick --abort"},
		"picked one":  {"git cherry-pick side side~1; git checkout -q HEAD -- . && git reset -q && rm .git/CHERRY_PICK_HEAD", "git cherry-pick --continue, or git cherry-pick --abort"},
		"revert":      {"git revert --no-edit HEAD~1", "git revert --continue, or git revert --abort"},
		"am":          {"git format-patch -q -1 side -o .git/patches && git am .git/patches/*", "git am --continue, or git am --abort"},
		"bisect":      {"git bisect start && git bisect bad && git bisect good HEAD~2", "git bisect reset"},
		"conflict":    {"echo mine > f && git stash -q && echo theirs > f && git commit -qam more && git stash pop", "git add FILE for each, or git reset --merge"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.commit(t)
			m.write(t, "f", "")
			m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\n---\n")
			shell := exec.CommandContext(t.Context(), "sh", "-c", `exec 2>&1
				change() { echo $1 > f && git add f && git commit -qm $1; }
				git checkout -qb main && change base && git branch side && change one && change two
				git checkout -q side && change three && change four && git checkout -q main
				`+c.script+"; true")
			shell.Dir = m.repo
			shell.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true",
				"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.c", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b.c")
			said, err := shell.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			operation, _, _ := strings.Cut(strings.TrimPrefix(c.end, "git "), " ")
			want := "ralph: git " + operation + " is in progress in ROOT/repo; end it with: " + c.end + "\n"
			if name == "conflict" {
				want = "ralph: files in ROOT/repo have conflicts; end them with: " + c.end + "\n"
			}
			agent := func(h *compose.Host) {
				h.Env = append(h.Env, "RALPH_AGENT_COMMAND=touch "+m.root+"/ran", "RALPH_COMMIT_AUTHOR=A <a@b.c>")
			}
			for _, args := range [][]string{
				{"run", "--prompt=hi"}, {"run", "--prompt=hi", "--branch-strategy=merge-to-head"},
				{"run", "--prompt=hi", "--branch-strategy=branch", "--branch=x"}, {"work", "--publish=merge"}, {"merge", "one"},
			} {
				got := m.run(t, agent, append(args, "--sandbox=none")...)
				if got.status != exit.Usage || got.stderr != want {
					t.Errorf("%v: %+v, want %q\ngit said %s", args, got, want, said)
				}
			}
			warning := strings.TrimSuffix(strings.TrimPrefix(want, "ralph: "), "\n")
			if got := m.run(t, agent, "doctor", "--sandbox=none", "--json"); strings.Count(got.stdout, warning) != 1 {
				t.Errorf("doctor does not warn: %+v", got)
			}
			if _, err := os.Stat(m.root + "/ran"); err == nil {
				t.Error("an agent was started")
			}
		})
	}
}
