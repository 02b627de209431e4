package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReplacedGitFile: landlock cannot stop an agent from replacing its worktree's .git while it works. Programs in the
// configuration of the replacement run only in the sandbox, and the work is imported.
func TestReplacedGitFile(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		asOrdinary(t, "TestReplacedGitFile", "", 2)
		return
	}
	if !hasLandlock() {
		t.Skip("this kernel has no Landlock of ABI 6: it is older than Linux 6.12, or has it switched off")
	}
	for _, kind := range []string{"folder", "file"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, r := newScene(t, doIt), newRepository(t)
			r.write(t, ".ralph/backlog/greet.md", "---\ntitle: Greet\nlabels: [no-human]\n---\nWrite hello.txt.\n")
			marker := s.path("ran")
			for name, script := range map[string]string{"evil.sh": evilRepository, "agent.sh": replacing} {
				r.write(t, name, strings.NewReplacer("MARKER", marker, "KIND", kind).Replace(script))
			}
			r.commit(t, "a backlog")
			p := s.start(t, r, []string{"RALPH_SANDBOX=landlock", "RALPH_AGENT_COMMAND=sh agent.sh"},
				"work", "--max-iterations", "2", "--gate", "test -f hello.txt", "--protected-path", ".ralph/**")
			if got := p.end(t); got != 0 {
				t.Errorf("status %d", got)
			}
			if n := r.commits(t, "ralph/greet"); n != 2 {
				t.Errorf("%d commits", n)
			}
			if text, err := os.ReadFile(marker); err == nil {
				t.Errorf("these ran on the host:\n%s", text)
			}
			s.clean(t, r)
			// Control: the planted configuration does run programs on a host that trusts it.
			evil := r.clone(t)
			plant := exec.CommandContext(t.Context(), "sh", "evil.sh", filepath.Join(string(evil), ".git"), t.TempDir())
			plant.Dir, plant.Env = string(evil), append(os.Environ(), gitEnv()...)
			if out, err := plant.CombinedOutput(); err != nil {
				t.Fatalf("plant: %v\n%s", err, out)
			}
			_ = os.Remove(marker)
			_, _ = evil.try("status")
			if _, err := os.Stat(marker); err != nil {
				t.Errorf("the repository is not evil: %v", err)
			}
		})
	}
}

// replacing is an agent that commits, and replaces .git before ralph examines its work. It succeeds only if git in the
// sandbox runs what is planted.
const replacing = `set -e
tree=$PWD
if [ ! -e "$HOME/private" ]; then
  git rev-parse --absolute-git-dir >"$HOME/private"
  said=
else
  said='<promise>COMPLETE</promise>'
fi
export GIT_WORK_TREE=$tree GIT_DIR=$(cat "$HOME/private")
echo hello >>hello.txt
printf '* filter=evil diff=evil merge=evil\n' >.gitattributes
git add hello.txt .gitattributes
git commit --quiet --message "work"
unset GIT_WORK_TREE GIT_DIR
rm -rf .git
case KIND in
folder) evil=$tree/.git ;;
file) evil=$HOME/evil; echo "gitdir: $evil" >.git ;;
esac
sh evil.sh "$evil" "$TMPDIR"
echo "$(cat "$HOME/private")/objects" >"$evil/objects/info/alternates" # so that git finds here all that it may look for
rm -f "$TMPDIR/ran"
git status >/dev/null 2>&1 || :
test -s "$TMPDIR/ran"
echo "$said"
`

// evilRepository creates a repository of these files at $1, in which git runs programs at every opportunity. A program that
// runs writes to $2, and to a file of the host that no sandbox can write.
const evilRepository = `set -e
rm -rf "$1"
git init --quiet --bare "$1"
{
  echo "#!/bin/sh"
  echo "echo \"\$0 \$*\" >>MARKER"
  echo "echo \"\$0 \$*\" >>$2/ran"
  echo "case \$1 in clean|smudge) cat ;; esac"
} >"$2/payload"
chmod 755 "$2/payload"
set_() { git --git-dir="$repo" config "$1" "$2"; }
repo=$1
set_ core.bare false
set_ core.worktree "$PWD"
for key in core.fsmonitor core.sshCommand core.pager core.editor core.askPass diff.external gpg.program credential.helper \
  sequence.editor uploadpack.packObjectsHook; do set_ $key "$2/payload"; done
for key in filter.evil.clean filter.evil.smudge diff.evil.textconv diff.evil.command merge.evil.driver; do
  set_ $key "$2/payload ${key##*.}"
done
echo '* filter=evil diff=evil merge=evil' >"$repo/info/attributes"
for hook in applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit \
  pre-rebase post-checkout post-merge pre-push pre-receive update post-receive post-update reference-transaction pre-auto-gc \
  post-rewrite post-index-change; do
  cp "$2/payload" "$repo/hooks/$hook"
done
git --git-dir="$repo" add README.md >/dev/null 2>&1 || :
`
