package worktree

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// evil returns git configuration that runs a program wherever possible; the program makes the marker.
func evil(marker string) string {
	run := "touch " + marker
	return "[core]\n\tfsmonitor = " + run + "\n\trepositoryformatversion = 0\n\tpager = " + run + "\n" +
		"[filter \"e\"]\n\tclean = " + run + "; cat\n\tsmudge = " + run + "; cat\n" +
		"[diff \"e\"]\n\ttextconv = " + run + "\n\tcommand = " + run + "\n[diff]\n\texternal = " + run + "\n" +
		"[gpg]\n\tprogram = " + run + "\n[log]\n\tshowSignature = true\n"
}

// evilGitDir makes a complete git directory with evil configuration and hooks.
func (f *fixture) evilGitDir(dir, marker string) {
	f.Helper()
	f.sh("", "git", "init", "-q", "--bare", dir)
	f.sh("", "git", "-C", dir, "fetch", "-q", f.dir, "main:main")
	f.write(dir, "config", evil(marker))
	f.evilHooks(filepath.Join(dir, "hooks"), marker)
}

func (f *fixture) evilHooks(dir, marker string) {
	f.Helper()
	for _, hook := range []string{
		"post-checkout", "post-index-change", "reference-transaction", "pre-commit", "post-commit", "post-merge",
		"pre-rebase", "post-rewrite", "pre-push", "pre-merge-commit", "commit-msg", "prepare-commit-msg",
	} {
		f.write(dir, hook, "#!/bin/sh\ntouch "+marker+"\n")
		if err := os.Chmod(filepath.Join(dir, hook), 0o755); err != nil {
			f.Fatal(err)
		}
	}
}

// TestHostileWorktree lets an agent attack through its worktree. No attack may run a program, and earlier commits and
// changes are imported nevertheless.
func TestHostileWorktree(t *testing.T) {
	t.Parallel()
	tests := map[string]func(f *fixture, d, marker string){
		"E1 .git file points to a planted directory": func(f *fixture, d, marker string) {
			f.evilGitDir(filepath.Join(d, "ignored", "evil"), marker)
			f.write(d, ".git", "gitdir: ignored/evil\n")
		},
		".git is a directory": func(f *fixture, d, marker string) {
			f.sh(d, "rm", ".git")
			f.evilGitDir(filepath.Join(d, ".git"), marker)
		},
		".git is gone": func(f *fixture, d, _ string) { f.sh(d, "rm", ".git") },
		"E2 planted filter and attributes": func(f *fixture, d, marker string) {
			f.evilGitDir(filepath.Join(d, "ignored", "evil"), marker)
			f.write(d, ".git", "gitdir: ignored/evil\n")
			f.write(d, ".gitattributes", "* filter=e diff=e\n")
		},
		"E6 hooks in the shared directory": func(f *fixture, _, marker string) {
			f.evilHooks(filepath.Join(f.dir, ".git", "hooks"), marker)
		},
		"E5 textconv in the shared configuration": func(f *fixture, d, marker string) {
			f.git("config", "diff.e.textconv", "touch "+marker)
			f.git("config", "diff.external", "touch "+marker)
			f.write(d, ".gitattributes", "* diff=e\n")
		},
		"fsmonitor in the shared configuration": func(f *fixture, _, marker string) {
			f.git("config", "core.fsmonitor", "touch "+marker)
		},
		"nested repository with evil configuration": func(f *fixture, d, marker string) {
			f.evilGitDir(filepath.Join(d, "nested", ".git"), marker)
			f.write(d, "nested/file", "x")
		},
		"nested repository in the index": func(f *fixture, d, marker string) {
			f.sh(d, "git", "init", "-q", "nested")
			f.commit(filepath.Join(d, "nested"), "file", "x", "nested")
			f.sh(d, "git", "add", "nested")
			f.write(filepath.Join(d, "nested", ".git"), "config", evil(marker))
			f.evilHooks(filepath.Join(d, "nested", ".git", "hooks"), marker)
			f.write(d, "nested/.gitattributes", "* filter=e\n")
			f.write(d, "nested/file", "y") // same size as before: only the content, read through the filter, differs
		},
		"common directory of the worktree moved": func(f *fixture, d, marker string) {
			f.evilGitDir(filepath.Join(d, "ignored", "evil"), marker)
			f.write(f.sh(d, "git", "rev-parse", "--absolute-git-dir"), "commondir", filepath.Join(d, "ignored", "evil")+"\n")
		},
	}
	for name, attack := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tree := f.add("k", "r1")
			tip := f.commit(tree.Dir(), "done", "x", "work")
			f.write(tree.Dir(), "undone", "y")
			marker := filepath.Join(realDir(t), "marker")
			attack(f, tree.Dir(), marker)
			_ = os.Remove(marker) // the attack's own git may have made it
			got := f.imported(tree)
			if got.Tip != tip || len(got.Commits) != 1 {
				t.Errorf("imported %+v, want tip %s", got, tip)
			}
			if got.WIP == "" || f.repoShow(got.WIP, "undone") != "y" {
				t.Errorf("changes were not saved: %+v", got)
			}
			f.remove(tree)
			f.none(marker)
			// The next issue starts in the repository that the agent has attacked.
			next := f.add("next", "r2")
			f.imported(next)
			f.remove(next)
			f.none(marker)
		})
	}
}

// repoShow reads a file with the hardened git, for repositories with evil configuration.
func (f *fixture) repoShow(commit, path string) string {
	f.Helper()
	out, err := f.repo.git.Output(context.Background(), "cat-file", "blob", commit+":"+path)
	if err != nil {
		f.Fatal(err)
	}
	return out
}

// TestAgentsWithGit covers ordinary uses of git by agents.
func TestAgentsWithGit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do func(f *fixture, d string) (tip string) // after one commit "done"
		// detached says that HEAD stays as the agent left it.
		detached bool
		old      bool // the first commit must be kept under refs/ralph/old after it was imported
	}{
		"switches the branch": {do: func(f *fixture, d string) string {
			f.sh(d, "git", "switch", "-q", "-c", "other")
			return f.commit(d, "more", "x", "on another branch")
		}},
		"detaches HEAD": {do: func(f *fixture, d string) string {
			f.sh(d, "git", "checkout", "-q", "--detach")
			return f.commit(d, "more", "x", "detached")
		}},
		"amends": {old: true, do: func(f *fixture, d string) string {
			f.sh(d, "git", "commit", "-q", "--amend", "-m", "better")
			return f.sh(d, "git", "rev-parse", "HEAD")
		}},
		"resets": {old: true, do: func(f *fixture, d string) string {
			f.sh(d, "git", "reset", "-q", "--hard", "HEAD^")
			return f.sh(d, "git", "rev-parse", "HEAD")
		}},
		"deletes the branch under itself": {do: func(f *fixture, d string) string {
			tip := f.sh(d, "git", "rev-parse", "HEAD")
			f.sh(d, "git", "update-ref", "-d", "refs/heads/ralph/k")
			return tip
		}},
		"deletes the branch and works detached": {do: func(f *fixture, d string) string {
			f.sh(d, "git", "checkout", "-q", "--detach")
			f.sh(d, "git", "branch", "-q", "-D", "ralph/k")
			return f.commit(d, "more", "x", "detached")
		}},
		"is in the middle of a merge": {detached: true, do: func(f *fixture, d string) string {
			f.sh(d, "git", "switch", "-q", "-c", "side", "main")
			f.commit(d, "done", "other", "conflicts")
			f.sh(d, "git", "switch", "-q", "ralph/k")
			if _, err := f.try(d, "git", "merge", "side"); err == nil {
				f.Fatal("no conflict")
			}
			return f.sh(d, "git", "rev-parse", "HEAD")
		}},
		"is in the middle of a rebase": {detached: true, old: true, do: func(f *fixture, d string) string {
			f.sh(d, "git", "branch", "mine")
			f.sh(d, "git", "switch", "-q", "-c", "side", "main")
			f.commit(d, "done", "other", "conflicts")
			f.sh(d, "git", "switch", "-q", "ralph/k")
			if _, err := f.try(d, "git", "rebase", "side"); err == nil {
				f.Fatal("no conflict")
			}
			return f.sh(d, "git", "rev-parse", "HEAD")
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tree := f.add("k", "r1")
			d := tree.Dir()
			first := f.commit(d, "done", "x", "work")
			f.imported(tree)
			tip := test.do(f, d)
			got := f.imported(tree)
			if got.Tip != tip || f.ref("refs/heads/ralph/k") != tip || f.ref("refs/ralph/work/k") != tip {
				t.Errorf("tip %s, branch %s, work %s; want %s", got.Tip, f.ref("refs/heads/ralph/k"), f.ref("refs/ralph/work/k"), tip)
			}
			if kept := f.ref("refs/ralph/old/k/"+first[:12]) == first; kept != test.old {
				t.Errorf("first commit kept as old: %v, want %v", kept, test.old)
			}
			if !test.detached {
				if head := f.sh(d, "git", "symbolic-ref", "HEAD"); head != "refs/heads/ralph/k" {
					t.Errorf("HEAD is %s", head)
				}
			}
			f.remove(tree)
		})
	}
}

func TestOrphanBranchKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("k", "r1")
	tip := f.commit(tree.Dir(), "done", "x", "work")
	f.sh(tree.Dir(), "git", "checkout", "-q", "--orphan", "fresh")
	got, err := tree.Import(context.Background(), nil)
	if got.Tip != tip {
		t.Errorf("tip = %s, want %s (error %v)", got.Tip, tip, err)
	}
	if got.WIP != "" && f.show(got.WIP, "done") != "x" {
		t.Errorf("saved %s", got.WIP)
	}
}

func TestUnreadableFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git("config", "filter.bad.clean", "false")
	f.git("config", "filter.bad.required", "true")
	tree := f.add("k", "r1")
	for _, name := range []string{"a1", "a2", "a3", "z1", "z2"} {
		f.write(tree.Dir(), name, name)
	}
	f.write(tree.Dir(), ".gitattributes", "a3 filter=bad\n")
	got, err := tree.Import(context.Background(), nil)
	if err == nil || got.WIP == "" {
		t.Fatalf("got %+v, error %v", got, err)
	}
	for _, name := range []string{"a1", "a2", "z1", "z2", ".gitattributes"} {
		f.show(got.WIP, name)
	}
	if err := tree.Remove(context.Background()); !isErr(err, ErrUnsaved) {
		t.Errorf("remove: %v", err)
	}
	if err := os.Remove(filepath.Join(tree.Dir(), "a3")); err != nil {
		t.Fatal(err)
	}
	f.imported(tree)
	f.remove(tree)
}
