package attack

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/sandboxes/escape"
	"github.com/ralph-pool/ralph/worktree"
)

// maxPaths limits the paths of a commit in these attacks. It is low, so that a bomb that gets through does no harm.
const maxPaths = 10_000

// checkRefused reports an error if commits get into the user's repository. The script leaves the commits at HEAD.
func (r *repository) checkRefused(what, script string, args ...string) {
	r.Helper()
	out, exit, err := r.room.Sh("set -e; "+script, args...)
	if err != nil || !exit.OK() {
		r.Fatalf("%s: %+v, %v, %s", what, exit, err, out)
	}
	got, err := r.tryImport()
	if err == nil || got.Tip != r.base.Commit || r.git("rev-parse", "refs/heads/ralph/attack") != r.base.Commit {
		r.Errorf("%s: imported as %s, %v", what, got.Tip, err)
	}
	r.runInside(`git update-ref HEAD "$1"; git read-tree "$1"`, r.base.Commit)
}

// borrowHistory commits on top of a commit outside the run's history: a push would publish that commit.
func borrowHistory(s *escape.Suite) {
	r := openRepository(s)
	r.checkRefused("a commit on a private one", `
	c=$(printf 'tree %s\nparent %s\nauthor a <a@example.com> 1 +0000\ncommitter a <a@example.com> %s +0000\n\nx\n' \
		"$(git rev-parse 'HEAD^{tree}')" "$1" "$(date +%s)" | git hash-object -t commit -w --stdin)
	git update-ref HEAD "$c"`, r.private[0])
}

// breakGit commits objects that git on the host would obey, or that would crash or overload it.
func breakGit(s *escape.Suite) {
	r := openRepository(s)
	var id strings.Builder // raw tree id as escapes for printf
	raw, err := hex.DecodeString(r.git("rev-parse", "HEAD^{tree}"))
	if err != nil {
		s.Fatal(err)
	}
	for _, c := range raw {
		_, _ = fmt.Fprintf(&id, `\%03o`, c)
	}
	const commit = `git update-ref HEAD "$(git commit-tree -p HEAD -m x "$t")"`
	r.checkRefused("a folder named .GIT",
		`t=$(printf '40000 .GIT\000'"$1" | git hash-object -t tree -w --stdin --literally); `+commit, id.String())
	r.checkRefused("a submodule with a command", `
	b=$(printf '[submodule "s"]\n\tpath = s\n\turl = ./s\n\tupdate = !touch x\n' | git hash-object -w --stdin)
	t=$(printf '100644 blob %s\t.gitmodules\n' "$b" | git mktree); `+commit)
	r.checkRefused("many paths of few trees", `
	t=$(git rev-parse 'HEAD^{tree}')
	for level in 1 2 3 4 5; do t=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf '040000 tree %s\t%s\n' "$t" $i; done | git mktree); done; `+commit)
	r.checkRefused("many folders inside each other", `
	printf 'commit refs/heads/deep\ncommitter a <a@example.com> %s +0000\ndata 1\nx\nfrom %s\nM 100644 inline %s\ndata 1\nx\n' \
		"$(date +%s)" "$(git rev-parse HEAD)" "$1" | git fast-import --quiet
	git update-ref HEAD refs/heads/deep`, strings.Repeat("d/", 300)+"x")
}

// filter commits attributes that apply a filter of the user to files of the agent.
func filter(s *escape.Suite) {
	r := openRepository(s)
	marker := filepath.Join(filepath.Dir(r.dir), "marker")
	for _, direction := range []string{"smudge", "clean"} {
		r.git("config", "filter.user."+direction, "touch '"+marker+"'; cat")
	}
	r.runInside(`echo '*.txt filter=user' >.gitattributes; echo more >more.txt; git add -A; git commit -qm more; echo undone >undone.txt`)
	tip := r.importRun().Tip
	again, err := r.repo.Add(s.Bounded(), worktree.Spec{
		Run:        "attack-verify",
		ParentRun:  "attack",
		Key:        "attack",
		Base:       worktree.Base{Commit: tip, Name: r.base.Name},
		FilterBase: r.base.Commit,
		Private:    true,
		Detached:   true,
	})
	if err != nil {
		s.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(again.Dir(), "more.txt")); err != nil || string(text) != "more\n" {
		s.Errorf("the commit is checked out as %q, %v", text, err)
	}
	if _, err := os.Lstat(marker); err == nil {
		s.Errorf("git on the host has run the filter")
	}
}

// findings returns the policy's findings on the commits of a script.
func (r *repository) findings(script string, args ...string) string {
	r.Helper()
	r.runInside(script+`; git add -A; git commit -qm more`, args...)
	policy := publish.Policy{Repo: r.repo, Protected: publish.ProtectedPaths(), Secrets: redact.New(secret)}
	findings, err := policy.Check(r.Bounded(), r.tree, r.base.Commit, r.importRun().Tip)
	if err != nil {
		r.Fatal(err)
	}
	return strings.Join(findings, "\n")
}

// commitSecrets commits a value that ralph knows, in several encodings, and a token of a well-known format.
func commitSecrets(s *escape.Suite) {
	r := openRepository(s)
	forms := []string{
		"plain", secret, "base64", base64.StdEncoding.EncodeToString([]byte("the value is " + secret)),
		"hex", hex.EncodeToString([]byte(secret)), "two-strings", secret[:9] + `" + "` + secret[9:],
		"shape", "ghp_" + "k3Jf9QpZx7Lm2Vb8Nc4Rt6Yw1Hd5Sg0AeUoI",
	}
	findings := r.findings(`while [ $# -gt 0 ]; do printf '%s\n' "$2" >"$1"; shift 2; done`, forms...)
	for i := 0; i < len(forms); i += 2 {
		if !strings.Contains(findings, forms[i]+" adds a secret") {
			s.Errorf("a secret would be published (%s)", forms[i])
		}
	}
}

// changeProtected commits files that direct ralph, CI, agents or a person's git.
func changeProtected(s *escape.Suite) {
	r := openRepository(s)
	r.git("config", "core.hooksPath", "dev/hooks")
	paths := []string{
		".ralph/config.yaml", ".github/workflows/ci.yml", ".gitattributes", "web/CLAUDE.md",
		".Vscode/tasks.json", "dev/hooks/post-merge",
	}
	findings := r.findings(`for file; do mkdir -p "$(dirname "$file")"; echo x >"$file"; done
		mkdir weak; echo x >weak/settings.json; ln -s weak .claude`, paths...)
	for _, path := range append(paths, ".claude") {
		if !strings.Contains(findings, path+" is ") {
			s.Errorf("a commit to %s would be published", path)
		}
	}
}
