package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/filelock"
	"github.com/ralph-pool/ralph/worktree/filecopy"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/internal/link"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
	"github.com/ralph-pool/ralph/worktree/operation"
	"github.com/ralph-pool/ralph/worktree/record"
)

// git returns a runner pinned through ralph's record. It never reads the worktree's .git file, which an agent can write.
func (t *Tree) git() git.Runner {
	g := git.New(t.repo.opts.StateDir).ShareCache(t.repo.git)
	if gitDir := t.record().GitDir; gitDir != "" {
		return g.Pin(gitDir, t.repo.location.Common, t.Dir())
	}
	return g.Pin(t.repo.location.GitDir, t.repo.location.Common, t.Dir())
}

// makeLinked makes a linked worktree with its files.
func (t *Tree) makeLinked(ctx context.Context) error {
	if err := t.link(ctx); err != nil {
		return err
	}
	// So far only git has written the .git file. Later it is not trusted.
	gitDir, err := git.LinkedGitDir(t.Dir())
	if err != nil {
		return err
	}
	if was := t.record().GitDir; filepath.Dir(gitDir) != filepath.Dir(was) {
		return fmt.Errorf("git made the worktree's git directory in an unexpected place: %s", gitDir)
	} else if gitDir != was {
		if err := t.updateRecord(func(rec *record.Record) { rec.GitDir = gitDir }); err != nil {
			return err
		}
	}
	return t.checkOut(ctx)
}

// checkOut writes files and index of the tree's initial commit.
func (t *Tree) checkOut(ctx context.Context) error {
	config, err := t.userConfig(ctx)
	if err != nil {
		return err
	}
	rec := t.record()
	return t.git().CheckOut(ctx, config, filepath.Join(t.gitDir(), "index"), rec.Spec.Trusted(), cmp.Or(rec.FoldersCommit, rec.Start))
}

// link adds git's record of the worktree, without files, under the lock that ralph's processes share.
func (t *Tree) link(ctx context.Context) error {
	unlock, err := t.repo.lockWorktrees(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	rec := t.record()
	l := link.Link{Dir: t.Dir(), GitDir: rec.GitDir, Head: refname.Branch(rec.Spec.Branch), Reason: git.LockReason + rec.Spec.Run}
	if rec.Spec.Detached {
		l.Head = rec.Start
	}
	return link.Make(ctx, t.repo.git, t.repo.location.GitDir == t.repo.location.Common, l)
}

// lockWorktrees serialises adding, removing and listing git's records of worktrees.
func (r *Repo) lockWorktrees(ctx context.Context) (unlock func(), err error) {
	return filelock.Lock(ctx, r.statePath("locks", "worktrees"))
}

// hasUnfinishedOperation reports whether a rebase, merge or the like is unfinished in a linked worktree.
func (t *Tree) hasUnfinishedOperation() bool { return operation.Unfinished(t.record().GitDir) != "" }

// CopyIn copies files and folders of the user's checkout, for example ignored ones, to the same paths in the worktree; see
// [filecopy.Copy]. It skips Options.Private. It fails once a sandbox has been open on a private tree.
func (t *Tree) CopyIn(ctx context.Context, paths []string) error {
	return t.copyFrom(ctx, t.repo.location.Top, paths, filecopy.InnerLink)
}

// TakeUntracked is like CopyIn, for the untracked files of a worktree without an agent. It does not check links.
func (t *Tree) TakeUntracked(ctx context.Context, from *Tree) error {
	paths, err := link.Untracked(ctx, from.git())
	if err != nil {
		return err
	}
	return t.copyFrom(ctx, from.Dir(), paths, filecopy.AnyLink)
}

func (t *Tree) copyFrom(ctx context.Context, dir string, paths []string, links filecopy.Links) error {
	if len(paths) > 0 && t.HasSandboxRun() {
		return errors.New("copy: a sandbox has been open on the worktree")
	}
	var resolve func(path string) string // only for a layer: the commit may be an agent's, and must not choose what is copied
	if name := t.record().Layer; name != "" {
		resolve = func(path string) string { return t.repo.layers().Resolve(name, t.Dir(), path) }
	}
	return filecopy.Copy(ctx, dir, t.Dir(), paths, resolve, links, t.repo.opts.Private...)
}
