package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/internal/filelock"
	"github.com/ralph-pool/ralph/worktree/filecopy"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/link"
	"github.com/ralph-pool/ralph/worktree/operation"
	"github.com/ralph-pool/ralph/worktree/record"
	"github.com/ralph-pool/ralph/worktree/refname"
)

// git is pinned to the tree through ralph's own record. The worktree's .git file is never read.
func (t *Tree) git() git.Runner {
	g := git.New(t.repo.opts.StateDir).SameMemory(t.repo.git)
	if gitDir := t.record().GitDir; gitDir != "" {
		return g.Pin(gitDir, t.repo.at.Common, t.Dir())
	}
	return g.Pin(t.repo.at.GitDir, t.repo.at.Common, t.Dir())
}

// makeLinked makes a linked worktree, files included.
func (t *Tree) makeLinked(ctx context.Context) error {
	if err := t.link(ctx); err != nil {
		return err
	}
	// Only git has written the .git file so far. It is never believed again.
	content, err := os.ReadFile(filepath.Join(t.Dir(), ".git"))
	if err != nil {
		return err
	}
	gitDir := filepath.Clean(strings.TrimSpace(strings.TrimPrefix(string(content), "gitdir:")))
	if was := t.record().GitDir; filepath.Dir(gitDir) != filepath.Dir(was) {
		return fmt.Errorf("git made the worktree's git directory in an unexpected place: %s", gitDir)
	} else if gitDir != was {
		if err := t.update(func(rec *record.Record) { rec.GitDir = gitDir }); err != nil {
			return err
		}
	}
	return t.checkOut(ctx)
}

// checkOut writes files and index of the commit that the tree is made at.
func (t *Tree) checkOut(ctx context.Context) error {
	config, err := t.userConfig(ctx)
	if err != nil {
		return err
	}
	rec := t.record()
	return t.git().CheckOut(ctx, config, filepath.Join(t.adminDir(), "index"), rec.Spec.Trusted(), cmp.Or(rec.At, rec.Start))
}

// link makes git's record of the worktree, without files. Ralph's processes take turns.
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
	return link.Make(ctx, t.repo.git, t.repo.at.GitDir == t.repo.at.Common, l)
}

// lockWorktrees serialises what adds, removes and lists git's records of worktrees.
func (r *Repo) lockWorktrees(ctx context.Context) (unlock func(), err error) {
	return filelock.Lock(ctx, r.path("locks", "worktrees"))
}

// midOperation reports a rebase, merge or the like that has not ended in a linked worktree.
func (t *Tree) midOperation() bool { return operation.In(t.record().GitDir) != "" }

// CopyIn copies files and folders of the user's checkout, such as what git ignores, to the same place in the worktree. See
// [filecopy.Copy]; Options.Private are left out. It fails once a sandbox has been open on a private tree.
func (t *Tree) CopyIn(ctx context.Context, paths []string) error {
	return t.copyFrom(ctx, t.repo.at.Top, paths, filecopy.InnerLink)
}

// TakeUntracked is CopyIn for what another worktree has besides what git tracks there. No agent may have been in that one;
// its links are copied as they are.
func (t *Tree) TakeUntracked(ctx context.Context, from *Tree) error {
	paths, err := link.Untracked(ctx, from.git())
	if err != nil {
		return err
	}
	return t.copyFrom(ctx, from.Dir(), paths, filecopy.AnyLink)
}

func (t *Tree) copyFrom(ctx context.Context, dir string, paths []string, links filecopy.Links) error {
	if len(paths) > 0 && t.Used() {
		return errors.New("copy: a sandbox has been open on the worktree")
	}
	var place func(path string) string // only there: the commit, which may be an agent's, does not choose what is copied
	if name := t.record().Layer; name != "" {
		place = func(path string) string { return t.repo.layers().Resolve(name, t.Dir(), path) }
	}
	return filecopy.Copy(ctx, dir, t.Dir(), paths, place, links, t.repo.opts.Private...)
}
