package publish_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/internal/gittest"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/named"
)

func TestMain(m *testing.M) {
	gittest.Isolate()
	goleak.VerifyTestMain(m)
}

// credential looks like one of a well-known format.
const credential = "ghp_" + "k3Jf9QpZx7Lm2Vb8Nc4Rt6Yw1Hd5Sg0AeUoI"

const (
	// person changes a protected file on the remote's main, from a clone. The agent commits, too.
	person = `P=$(mktemp -d); git clone -q -b main "$(git remote get-url origin)" "$P"
mkdir -p "$P/.github/workflows"; echo new > "$P/.github/workflows/ci.yml"; echo p > "$P/person"; git -C "$P" add -A
git -C "$P" commit -qm 'By a person'; git -C "$P" push -q origin main; rm -rf "$P"
echo work > work; git add -A; git commit -qm work; `
	evil = `mkdir -p .github/workflows; echo evil > .github/workflows/evil.yml; git add -A; `
)

// project is a repository whose main is also on a remote.
type project struct {
	t     *testing.T
	dir   string
	state string
	files []named.File // of the policy
}

func newProject(t *testing.T) *project {
	t.Helper()
	dir := t.TempDir()
	p := &project{t: t, dir: filepath.Join(dir, "repo"), state: filepath.Join(dir, "state")}
	p.sh(dir, `git init -q --bare -b main origin.git; git init -q -b main repo; cd repo; git remote add origin "$PWD/../origin.git"
echo hello > README; git add -A; git commit -qm init`)
	return p
}

// sh runs a script and returns its output.
func (p *project) sh(dir, script string) string {
	p.t.Helper()
	cmd := exec.Command("sh", "-c", "set -e; "+script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "RALPH_BRANCH=ralph/a")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// findings returns the policy's findings about the commits that the script, as an agent in a worktree, makes.
func (p *project) findings(script string) []string {
	p.t.Helper()
	ctx := p.t.Context()
	p.sh(p.dir, `git push -q origin main`)
	repo, err := worktree.Open(ctx, p.dir, worktree.Options{StateDir: p.state, Remote: "origin"})
	if err != nil {
		p.t.Fatal(err)
	}
	base, err := repo.Base(ctx, "main")
	if err != nil {
		p.t.Fatal(err)
	}
	base.Remote = "main"
	tree, err := repo.Add(ctx, worktree.Spec{Run: "r", Key: "a", Branch: "ralph/a", Base: base})
	if err != nil {
		p.t.Fatal(err)
	}
	p.sh(tree.Dir(), script)
	got, err := tree.Import(ctx, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	policy := publish.Policy{
		Repo: repo, Protected: publish.ProtectedPaths(), Secrets: redact.New("a-value-to-be-kept"), Files: p.files,
	}
	found, err := policy.Check(ctx, tree, base.Commit, got.Tip)
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

// Changes that people have made on the base meanwhile do not count as the agent's, however they got into the branch.
func TestChangesOfTheBaseBlockNobody(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"merged":            `git fetch -q origin; git merge -q --no-edit origin/main`,
		"merged with edits": `git fetch -q origin; git merge -q --no-commit --no-ff origin/main; echo both > person; git add -A; git commit -qm merged`,
		"rebased":           `git pull -q --rebase origin main`,
		"twice":             `git fetch -q origin; git merge -q --no-edit origin/main; echo x > x; git add -A; git commit -qm x; git switch -qc side HEAD~1; echo y > y; git add -A; git commit -qm y; git switch -q -; git merge -q --no-edit side`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if found := newProject(t).findings(person + script); len(found) > 0 {
				t.Errorf("found %q", found)
			}
		})
	}
}

// No ref, merge or configuration of the agent's hides its own change from the check.
func TestMergesSmuggleNothing(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"in a merge":              `git fetch -q origin; git merge -q --no-commit --no-ff origin/main; ` + evil + `git commit -qm merged`,
		"changed in a merge":      `git fetch -q origin; git merge -q --no-commit --no-ff origin/main; echo evil > .github/workflows/ci.yml; git add -A; git commit -qm merged`,
		"taken back in a merge":   `git fetch -q origin; git merge -q -s ours --no-edit origin/main`,
		"on a side":               `git switch -qc side; ` + evil + `git commit -qm side; git switch -q -; git merge -q --no-ff --no-edit side`,
		"on a side, then removed": `git switch -qc side; ` + evil + `git commit -qm side; git rm -q .github/workflows/evil.yml; git commit -qm gone; git switch -q -; git merge -q --no-ff --no-edit side`,
		"in a merge, and dropped by the next": `git fetch -q origin; git merge -q --no-edit origin/main; ` + evil + `
M=$(git commit-tree -p HEAD~1 -p origin/main -m x $(git write-tree)); git reset -q --hard $(git commit-tree -p $M -p HEAD -m x HEAD^{tree})`,
		"merged with itself":       evil + `git reset -q --hard $(git commit-tree -p HEAD -p HEAD~1 -m x $(git write-tree))`,
		"as many parents":          `git fetch -q origin; ` + evil + `git reset -q --hard $(git commit-tree -p HEAD -p origin/main -p HEAD~1 -m x $(git write-tree))`,
		"from a root of its own":   `git switch -q --orphan o; ` + evil + `git commit -qm o; git switch -q $RALPH_BRANCH; git merge -q --allow-unrelated-histories --no-edit o`,
		"remote ref":               evil + `git commit -qm x; git update-ref refs/remotes/origin/main HEAD; git update-ref refs/remotes/origin/HEAD HEAD`,
		"branch of the base":       evil + `git commit -qm x; git update-ref refs/heads/main HEAD`,
		"pushed elsewhere":         evil + `git commit -qm x; git push -q origin HEAD:refs/heads/mine HEAD:refs/tags/main HEAD:refs/heads/refs/heads/main`,
		"another remote":           evil + `git commit -qm x; git init -q --bare ../evil; git push -q ../evil HEAD:main; R=$(git remote get-url origin); git remote set-url origin $PWD/../evil; git remote set-url --push origin $R; git fetch -q`,
		"address instead of":       evil + `git commit -qm x; git init -q --bare ../evil; git push -q ../evil HEAD:main; R=$(git remote get-url origin); git config url.$R.pushInsteadOf $R; git config url.$PWD/../evil.insteadOf $R; git fetch -q`,
		"a branch that was there":  `git merge -q --no-edit outsider`,
		"a tag that was there":     `git merge -q --no-edit v1`,
		"an older base":            `git reset -q --hard $(git commit-tree -p HEAD -p v0 -m x $(git rev-parse v0^{tree}))`,
		"the note of refs is gone": evil + `git commit -qm x; git tag -f v1; rm -f "$(dirname "$PWD")"/*.refs`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			// An older base had another workflow, and an outsider's branch was fetched that is on no base.
			p.sh(p.dir, `mkdir -p .github/workflows; echo weak > .github/workflows/old.yml; git add -A; git commit -qm weak; git tag v0
echo strong > .github/workflows/old.yml; git commit -qam strong
git switch -qc outsider; `+evil+`git commit -qm outside; git tag v1; git switch -q main`)
			if found := p.findings(person + script); !strings.Contains(strings.Join(found, "\n"), ".github/workflows/") {
				t.Errorf("found %q", found)
			}
		})
	}
}

// Changes of protected paths, and secrets, with the finding for each.
func TestFindings(t *testing.T) {
	t.Parallel()
	commit := `; git add -A; git commit -qm x`
	links := `mkdir -p docs tools/cursor shared .cursor; echo x | tee docs/guide.md tools/cursor/old.mdc shared/settings.json .cursor/x
ln -s docs/guide.md CLAUDE.md; ln -s ../tools/cursor .cursor/rules; ln -s tools/claude .claude; ln -s ../shared tools/claude
ln -s deep/1 GEMINI.md; mkdir deep; for i in 1 2 3 4 5 6; do ln -s $((i+1)) deep/$i; done; echo x > deep/7
ln -s l1/c.md QWEN.md; ln -s l2 l1; mkdir l2; echo x > l2/c.md; ln -s "$PWD/docs/abs" WARP.md; echo x > docs/abs
ln -s n1/c.md CRUSH.md; ln -s n2 n1; ln -s n3 n2; mkdir n3; echo x > n3/c.md; ln -s o1/c.md AGENT.md; ln -s o2 o1
ln -s gh1 .github; ln -s gh2 gh1; mkdir gh2; echo x > gh2/x
mkdir loop; ln -s ../loop loop/a; ln -s ../loop loop/b; ln -s round round; ln -s .. docs/up; ln -s ../../elsewhere out` + commit
	ups := `mkdir -p deep/dir conf .cursor; echo x | tee deep/guide.md deep/abs deep/dir/x conf/x
ln -s deep/dir l; ln -s l/../guide.md CLAUDE.md; ln -s ../l/../rules .cursor/rules; ln -s conf .config; ln -s "$PWD/l/../abs" WARP.md` + commit
	for name, c := range map[string]struct{ before, script, want string }{
		"nothing":         {"", `echo fine > fine` + commit, ""},
		"no commit":       {"", `true`, ""},
		"path":            {"", evil + `git commit -qm x`, ".github/workflows/evil.yml is protected (.github/workflows/**)"},
		"path, taken out": {"", evil + `git commit -qm x; git rm -qr .github; git commit -qm y`, ".github/workflows/evil.yml is protected (.github/workflows/**)"},
		"secret":          {"", `echo "the key is a-value-to-be-kept" > notes` + commit, "notes adds a secret"},
		"secret of a merge": {
			"", person + `git fetch -q origin; git merge -q --no-commit --no-ff origin/main; echo ` + credential + ` > person; git add -A; git commit -qm merged`,
			"person adds a secret",
		},
		"secret as a name": {"", `touch a-value-to-be-kept` + commit, "a file's name contains a secret"},

		// A link or submodule in place of a folder puts files there that no path shows.
		"link": {"", `mkdir weak; echo evil > weak/copilot-instructions.md; ln -s weak .github` + commit, ".github is a link that replaces a folder with protected files (.github/workflows/**)"},
		"link, then folder": {
			"", `ln -s weak .github` + commit + `; git rm -q .github; mkdir .github; echo x > .github/FUNDING.yml` + commit,
			".github is a link that replaces a folder with protected files (.github/workflows/**)",
		},

		// If a protected path is a link, its target is protected, too.
		"behind a link":           {links, `echo evil >> docs/guide.md` + commit, "docs/guide.md is the target of the protected CLAUDE.md"},
		"behind a linked folder":  {links, `echo evil > tools/cursor/new.mdc` + commit, "tools/cursor/new.mdc is the target of the protected .cursor/rules/new.mdc"},
		"behind a link to a link": {links, `echo evil > shared/settings.json` + commit, "shared/settings.json is the target of the protected .claude/settings.json"},
		"behind many links":       {links, `echo evil > deep/7` + commit, "deep/7 is the target of the protected GEMINI.md"},
		"behind an absolute link": {links, `echo evil > docs/abs` + commit, "docs/abs is the target of the protected WARP.md"},
		"another folder behind":   {links, `mkdir e; echo evil > e/c.md; rm l1; ln -s e l1` + commit, "l1 is the target of the protected QWEN.md"},
		"a folder for a link":     {links, `rm l1; mkdir l1; echo evil > l1/c.md` + commit, "l1 is the target of the protected QWEN.md\nl1/c.md is the target of the protected QWEN.md"},
		"a folder's link between": {links, `mkdir -p e/workflows; echo evil > e/workflows/x.yml; rm gh1; ln -s e gh1` + commit, "gh1 is the target of the protected .github"},
		"a link between":          {links, `mkdir e; echo evil > e/c.md; rm n2; ln -s e n2` + commit, "n2 is the target of the protected CRUSH.md"},
		"a link for a folder":     {links, `mkdir e; echo evil > e/c.md; git rm -qr n3; ln -s e n3` + commit, "n3 is the target of the protected CRUSH.md\nn3/c.md is the target of the protected CRUSH.md"},
		"where none led":          {links, `mkdir o2; echo evil > o2/c.md` + commit, "o2/c.md is the target of the protected AGENT.md"},
		"a link where none led":   {links, `mkdir e; echo evil > e/c.md; ln -s e o2` + commit, "o2 is the target of the protected AGENT.md"},
		"up, behind a link":       {ups, `echo evil > deep/guide.md` + commit, "deep/guide.md is the target of the protected CLAUDE.md"},
		"a link before going up":  {ups, `mkdir -p e/x; echo evil > e/guide.md; rm l; ln -s e/x l` + commit, "l is the target of the protected .cursor/rules"},
		"a folder before that":    {ups, `git rm -qr deep/dir; mkdir -p e/x; echo evil > e/guide.md; ln -s ../e/x deep/dir` + commit, "deep/dir is the target of the protected .cursor/rules"},
		"up, and a folder":        {ups, `mkdir deep/rules; echo evil > deep/rules/new.mdc` + commit, "deep/rules/new.mdc is the target of the protected .cursor/rules/new.mdc"},
		"absolute, and up":        {ups, `echo evil > deep/abs` + commit, "deep/abs is the target of the protected WARP.md"},
		"down from a linked one":  {ups, `mkdir e; echo evil > e/config.toml; ln -s ../e conf/mise` + commit, "conf/mise is the target of the protected .config/mise"},
		"the top as a folder":     {`mkdir .github; ln -s .. .github/workflows` + commit, `echo evil > x.yml` + commit, "x.yml is the target of the protected .github/workflows/x.yml"},
		"where no link leads":     {ups, `echo fine > guide.md; mkdir rules; echo fine > rules/new.mdc; mkdir docs; echo fine > docs/abs; mv conf/x conf/y` + commit, ""},
		"beside the links":        {links, `echo fine > docs/other.md; echo > top; echo > loop/x` + commit, ""},

		// Credentials are found in common encodings.
		"base64": {"", "printf %s " + credential + " | base64 -w 20 > out" + commit, "out adds a secret"},
		"UTF-16": {"", "printf %s " + credential + " | iconv -t UTF-16 > out" + commit, "out adds a secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			if c.before != "" {
				p.sh(p.dir, c.before)
			}
			if got := strings.Join(p.findings(c.script), "\n"); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// Secrets in a commit's message count, too. Many findings are counted and not all listed.
func TestFindingsOfMessagesAndMany(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	found := p.findings(`i=0; while [ $i -lt 30 ]; do i=$((i+1)); mkdir $i; echo x > $i/AGENTS.md; done; git add -A; git commit -qm "a-value-to-be-kept"`)
	if len(found) != publish.MaxFindings+1 || found[publish.MaxFindings] != "and 11 more" {
		t.Errorf("found %d: %q", len(found), found)
	}
	q := newProject(t)
	if found := q.findings(`echo x > x; git add -A; git commit -qm "a-value-to-be-kept"`); len(found) != 1 || !strings.HasPrefix(found[0], "the message, ") {
		t.Errorf("found %q", found)
	}
}
