package session_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/session"
)

// The patch changes a clean checkout of the base to the state of the workspace.
func TestDiffHasEverything(t *testing.T) {
	each(t, func(t *testing.T, p sandboxes.Provider) {
		files := map[string]string{
			"committed": "1\n", "staged": "1\n", "unstaged": "1\n", "removed": "1\n", "same": "1\n", ".gitignore": "ignored\nforced\n",
		}
		dir := repository(t, files)
		fresh := filepath.Join(t.TempDir(), "fresh")
		git(t, dir, "clone", "--quiet", "--local", dir, fresh)
		s := prepare(t, session.Config{Provider: p, Spec: spec(dir)})
		sh(t, s, `echo 2 >committed; git commit -qam two; echo 2 >staged; git add staged; echo 2 >unstaged; rm removed
			mkdir "a b"; echo new >"a b/untracked é"; printf '\000\001' >binary; echo no >ignored; echo f >forced; git add -f forced
			ln -s /etc/passwd link; printf '#!/bin/sh\n' >tool; chmod +x tool; git config diff.noprefix true; git config color.diff always`)
		before := sh(t, s, "git status --porcelain; git count-objects -v; git for-each-ref").Stdout
		a := collect(t, s)
		if a.Diff.Truncated || a.Diff.Incomplete != "" || a.Diff.Missing != "" || a.Base != s.Base() || len(a.Base) != 40 {
			t.Fatalf("base %q, diff %+v", a.Base, a.Diff)
		}
		if after := sh(t, s, "git status --porcelain; git count-objects -v; git for-each-ref").Stdout; !bytes.Equal(before, after) {
			t.Errorf("collecting changes the repository:\n%s\n%s", before, after)
		}
		patch := filepath.Join(t.TempDir(), "patch")
		write(t, patch, string(a.Diff.Text))
		git(t, fresh, "apply", patch)
		for name, want := range map[string]string{
			"committed": "2\n", "staged": "2\n", "unstaged": "2\n", "same": "1\n", "a b/untracked é": "new\n",
			"binary": "\x00\x01", "forced": "f\n",
		} {
			if got, err := os.ReadFile(filepath.Join(fresh, name)); err != nil || string(got) != want {
				t.Errorf("%s is %q, %v", name, got, err)
			}
		}
		for _, name := range []string{"ignored", "removed"} {
			if _, err := os.Lstat(filepath.Join(fresh, name)); !os.IsNotExist(err) {
				t.Errorf("%s is there: %v", name, err)
			}
		}
		if to, err := os.Readlink(filepath.Join(fresh, "link")); err != nil || to != "/etc/passwd" {
			t.Errorf("the link leads to %q, %v", to, err)
		}
		if info, err := os.Stat(filepath.Join(fresh, "tool")); err != nil || info.Mode()&0o100 == 0 {
			t.Errorf("the tool is %v, %v", info.Mode(), err)
		}
	})
}

// A change is seen even if it follows git's last look at once and keeps the file's size.
func TestDiffSeesRacyChanges(t *testing.T) {
	each(t, func(t *testing.T, p sandboxes.Provider) {
		dir := repository(t, nil)
		s := prepare(t, session.Config{Provider: p, Spec: spec(dir)})
		sh(t, s, `for i in 1 2 3 4 5 6 7 8; do echo a >f$i; done; git add .; for i in 1 2 3 4 5 6 7 8; do echo b >f$i; done`)
		if got := bytes.Count(collect(t, s).Diff.Text, []byte("\n+b\n")); got != 8 {
			t.Errorf("%d of 8 changes are in the diff", got)
		}
	})
}

func TestDiffInPrivateRepository(t *testing.T) {
	each(t, func(t *testing.T, p sandboxes.Provider) {
		if p.Capabilities().Files == sandboxes.InPlace {
			return // it has the worktree's own repository, as in the other tests
		}
		dir := repository(t, map[string]string{"f": "1\n"})
		tree, private := filepath.Join(t.TempDir(), "tree"), filepath.Join(t.TempDir(), "private")
		git(t, dir, "worktree", "add", "--quiet", "--detach", tree)
		git(t, dir, "init", "--quiet", "--bare", private)
		git(t, private, "config", "core.bare", "false")
		objects := filepath.Join(dir, ".git", "objects")
		write(t, filepath.Join(private, "objects/info/alternates"), objects+"\n")
		git(t, private, "update-ref", "HEAD", strings.TrimSpace(git(t, dir, "rev-parse", "HEAD")))
		sp := spec(tree)
		sp.GitDir, sp.Objects = private, []string{objects}
		s := prepare(t, session.Config{Provider: p, Spec: sp})
		sh(t, s, `echo 2 >f; git commit -qam inside 2>/dev/null || { git add -A; git commit -qm inside; }; echo u >untracked`)
		d := collect(t, s).Diff
		if d.Missing+d.Incomplete != "" || !bytes.Contains(d.Text, []byte("\n-1\n+2\n")) || !bytes.Contains(d.Text, []byte("b/untracked")) {
			t.Errorf("%s%s%s", d.Missing, d.Incomplete, d.Text)
		}
	})
}

func TestDiffOfNewRepository(t *testing.T) {
	each(t, func(t *testing.T, p sandboxes.Provider) {
		dir := t.TempDir()
		git(t, dir, "init", "--quiet")
		s := prepare(t, session.Config{Provider: p, Spec: spec(dir)})
		sh(t, s, "echo 1 >f; git add f; git commit -qm first")
		if d := collect(t, s).Diff; d.Missing+d.Incomplete != "" || !bytes.Contains(d.Text, []byte("\n+1\n")) {
			t.Errorf("%+v", d)
		}
	})
}

func TestDiffWithoutRepository(t *testing.T) {
	each(t, func(t *testing.T, p sandboxes.Provider) {
		s := prepare(t, session.Config{Provider: p, Spec: spec(t.TempDir())})
		if d := collect(t, s).Diff; s.Base() != "" || d.Text != nil || !strings.Contains(d.Missing, "not a git repository") {
			t.Errorf("base %q, diff %+v", s.Base(), d)
		}
	})
}

// A damaged repository leads to a reason in the Diff, never to an error or an endless answer.
func TestDiffOfSpoiltRepositories(t *testing.T) {
	tests := []struct {
		name, script string
		want         func(d session.Diff) bool
	}{
		{"no objects", "rm -rf .git/objects", func(d session.Diff) bool { return d.Missing != "" }},
		{"no repository", "rm -rf .git", func(d session.Diff) bool { return d.Missing != "" }},
		{"broken index", "echo x >.git/index", func(d session.Diff) bool { return d.Missing+d.Incomplete != "" }},
		{"nested", "git init -q sub; echo u >u", func(d session.Diff) bool {
			return strings.Contains(d.Incomplete, "sub") && bytes.Contains(d.Text, []byte("+++ b/u\n"))
		}},
		{"large", "yes | head -c 9000000 >big", func(d session.Diff) bool { return d.Truncated && len(d.Text) == 4096 }},
		{"hook", "printf '#!/bin/sh\ntouch ran' | tee .git/hooks/post-index-change >.git/monitor; chmod +x .git/hooks/* .git/monitor\n" +
			"git config core.fsmonitor .git/monitor; git config diff.external .git/monitor; rm -f ran",
			func(d session.Diff) bool { return d.Missing+d.Incomplete == "" && len(d.Text) == 0 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, p sandboxes.Provider) {
				dir := repository(t, map[string]string{"f": "1\n"})
				s := prepare(t, session.Config{Provider: p, Spec: spec(dir), MaxDiff: 4096})
				sh(t, s, tt.script)
				if d := collect(t, s).Diff; !tt.want(d) {
					t.Errorf("%+v\n%s", d, d.Text)
				}
				if _, err := os.Lstat(filepath.Join(dir, "ran")); !os.IsNotExist(err) {
					t.Error("a planted program ran")
				}
			})
		})
	}
}
