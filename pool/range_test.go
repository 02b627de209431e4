package pool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/worktree"
)

// withRemote gives the fixture a remote with main, and publishes branches there.
func (f *fixture) withRemote() (bare string) {
	f.t.Helper()
	bare = filepath.Join(f.t.TempDir(), "origin.git")
	f.git(f.repo, "init", "-q", "--bare", "-b", "main", bare)
	f.git(f.repo, "remote", "add", "origin", bare)
	f.git(f.repo, "push", "-q", "origin", "main")
	repo, err := worktree.Open(f.t.Context(), f.repo, worktree.Options{StateDir: f.state, Remote: "origin"})
	if err != nil {
		f.t.Fatal(err)
	}
	f.Config.Repo, f.Config.Publish, f.Config.Protected = repo, pool.PublishBranch, pool.ProtectedPaths()
	return bare
}

const (
	done = `; echo "<promise>COMPLETE</promise>"`
	// person is somebody who changes what is protected on the remote's main, by a clone.
	person = `cat >/dev/null; set -e; P=$(mktemp -d); git clone -q -b main "$(git remote get-url origin)" "$P"
mkdir -p "$P/.github/workflows"; echo new > "$P/.github/workflows/ci.yml"; echo p > "$P/person"; git -C "$P" add -A
git -C "$P" commit -qm 'By a person'; git -C "$P" push -q origin main
echo work > work; git add -A; git commit -qm work; `
	evil = `mkdir -p .github/workflows; echo evil > .github/workflows/evil.yml; git add -A; `
)

// What people have changed on the base meanwhile is not the agent's, however it came into the branch.
func TestPeoplesChangesOfTheBaseBlockNobody(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"merged":            `git fetch -q origin; git merge -q --no-edit origin/main`,
		"merged with edits": `git fetch -q origin; git merge -q --no-commit --no-ff origin/main; echo both > person; git add -A; git commit -qm merged`,
		"rebased":           `git pull -q --rebase origin main`,
		"twice":             `git fetch -q origin; git merge -q --no-edit origin/main; echo x > x; git add -A; git commit -qm x; git switch -qc side HEAD~1; echo y > y; git add -A; git commit -qm y; git switch -q -; git merge -q --no-edit side`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, person+script+done)
			bare := f.withRemote()
			f.issue("a")
			r := f.only(f.sweep(t.Context()))
			if r.Verdict.Outcome != pool.Succeeded {
				t.Fatalf("outcome %s: %s", r.Verdict.Outcome, r.Verdict.Reason)
			}
			if out := f.git(bare, "ls-tree", "-r", "--name-only", "ralph/a"); !strings.Contains(out, "ci.yml") || !strings.Contains(out, "work") {
				t.Errorf("pushed: %s", out)
			}
		})
	}
}

// No ref, no merge and no configuration of the agent's gets a change of its own past the check.
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
			f := newFixture(t, person+script+done)
			// An older base had another workflow; an outsider's branch has been fetched and is on no base.
			f.write(".github/workflows/old.yml", "weak\n")
			f.git(f.repo, "add", "-A")
			f.git(f.repo, "commit", "-qm", "weak")
			f.git(f.repo, "tag", "v0")
			f.write(".github/workflows/old.yml", "strong\n")
			f.git(f.repo, "commit", "-qam", "strong")
			bare := f.withRemote()
			f.git(f.repo, "switch", "-qc", "outsider")
			f.write(".github/workflows/evil.yml", "evil\n")
			f.git(f.repo, "add", "-A")
			f.git(f.repo, "commit", "-qm", "outside")
			f.git(f.repo, "tag", "v1")
			f.git(f.repo, "switch", "-q", "main")
			f.issue("a")
			r := f.only(f.sweep(t.Context()))
			if r.Verdict.Outcome != pool.PolicyBlocked || !strings.Contains(r.Verdict.Reason, ".github/workflows/") {
				t.Errorf("outcome %s: %s", r.Verdict.Outcome, r.Verdict.Reason)
			}
			if out := f.git(bare, "for-each-ref", "refs/heads/ralph"); out != "" {
				t.Errorf("pushed: %s", out)
			}
		})
	}
}

// A secret that only a merge brings is found, among what people bring with it.
func TestSecretInAMerge(t *testing.T) {
	t.Parallel()
	f := newFixture(t, person+`git fetch -q origin; git merge -q --no-commit --no-ff origin/main; echo `+credential+` > person; git add -A; git commit -qm merged`+done)
	f.withRemote()
	f.issue("a")
	r := f.only(f.sweep(t.Context()))
	if r.Verdict.Outcome != pool.PolicyBlocked || r.Verdict.Reason != "person brings a secret" {
		t.Errorf("outcome %s: %s", r.Verdict.Outcome, r.Verdict.Reason)
	}
}

// Where commits are merged here, ralph's own merge with a base that has moved brings people's changes along.
func TestMergeOfRalphIsNoChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; git switch -qc side; echo s > s; git add -A; git commit -qm s; git switch -q -; echo w > w; git add -A; git commit -qm w
git merge -q --no-edit side`+done)
	f.issue("a")
	f.Config.Publish, f.Config.Protected = pool.PublishMerge, pool.ProtectedPaths()
	f.Config.Gate = lines("true")
	f.onStep = func(e pool.Event) {
		if e.Step == pool.StepPublish && !strings.Contains(f.git(f.repo, "log", "--format=%s", "main"), "person") {
			f.write(".github/workflows/ci.yml", "new\n")
			f.git(f.repo, "add", "-A")
			f.git(f.repo, "commit", "-qm", "By a person")
		}
	}
	if r := f.only(f.sweep(t.Context())); r.Verdict.Outcome != pool.Succeeded {
		t.Errorf("outcome %s: %s", r.Verdict.Outcome, r.Verdict.Reason)
	}
	if out := f.git(f.repo, "ls-tree", "-r", "--name-only", "main"); !strings.Contains(out, "ci.yml") || !strings.Contains(out, "w") {
		t.Errorf("merged: %s", out)
	}
}

// A link, or a submodule, in place of a folder puts files there that no path shows.
func TestLinksInPlaceOfProtectedFolders(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"link":              `mkdir weak; echo evil > weak/copilot-instructions.md; ln -s weak .github; git add -A; git commit -qm x`,
		"link, then folder": `ln -s weak .github; git add -A; git commit -qm x; git rm -q .github; mkdir .github; echo x > .github/FUNDING.yml; git add -A; git commit -qm x`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; set -e; `+script+done)
			f.withRemote()
			f.issue("a")
			r := f.only(f.sweep(t.Context()))
			if r.Verdict.Outcome != pool.PolicyBlocked || !strings.HasPrefix(r.Verdict.Reason, ".github is a link") {
				t.Errorf("outcome %s: %s", r.Verdict.Outcome, r.Verdict.Reason)
			}
		})
	}
}

// What people have protected by a link is protected under the name that the link leads to, too.
func TestWhatProtectedLinksLeadTo(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		`echo evil >> docs/guide.md`:            "docs/guide.md is what the protected CLAUDE.md leads to",
		`echo evil > tools/cursor/new.mdc`:      "tools/cursor/new.mdc is what the protected .cursor/rules/new.mdc leads to",
		`echo evil > shared/settings.json`:      "shared/settings.json is what the protected .claude/settings.json leads to",
		`echo fine > docs/other.md; echo > top`: "",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; set -e; `+script+`; git add -A; git commit -qm x`+done)
			for _, file := range []string{"docs/guide.md", "tools/cursor/old.mdc", "shared/settings.json", ".cursor/x"} {
				f.write(file, "x\n")
			}
			for name, to := range map[string]string{
				"CLAUDE.md": "docs/guide.md", ".cursor/rules": "../tools/cursor", ".claude": "tools/claude", "tools/claude": "../shared",
				"round": "round", "docs/up": "..", "out": "../../elsewhere",
			} {
				if err := os.Symlink(to, filepath.Join(f.repo, name)); err != nil {
					t.Fatal(err)
				}
			}
			f.git(f.repo, "add", "-A")
			f.git(f.repo, "commit", "-qm", "Links")
			f.withRemote()
			f.issue("a")
			r := f.only(f.sweep(t.Context()))
			if blocked := r.Verdict.Outcome == pool.PolicyBlocked; blocked != (want != "") || r.Verdict.Reason != want {
				t.Errorf("outcome %s: %s", r.Verdict.Outcome, r.Verdict.Reason)
			}
		})
	}
}
