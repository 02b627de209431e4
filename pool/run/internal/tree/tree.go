// Package tree finds or makes the worktree of a run. Package pool/run uses it.
package tree

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree"
)

// Maker makes worktrees. All fields are required. It is safe for concurrent use.
type Maker struct {
	Config *config.Config // with its defaults
	Spaces *workspace.Config
}

// Base returns the commit from which a run starts. With a remote it is the remote's tip of the base branch, because the local
// branch may be old. there has the remote's tips of that branch and of the others; nil: the remote was not asked.
func (m *Maker) Base(ctx context.Context, others ...string) (base worktree.Base, there map[string]string, err error) {
	c := m.Config
	defer workspace.BeginWait(ctx, "fetching "+cmp.Or(c.Base, "the base")+" from")()
	base, err = c.Repo.Base(ctx, c.Base)
	remote := c.Repo.Remote()
	if err != nil || remote == "" || c.Publish == journal.PublishMerge || c.Publish == journal.PublishNone {
		return base, nil, err
	}
	branch := strings.TrimPrefix(base.Name, remote+"/")
	there, err = c.Repo.RemoteTips(ctx, append(others, branch)...)
	tip := there[branch]
	if err == nil && tip == "" && c.Publish == journal.PublishRequest && c.Requests.TargetBranch(base.Name, remote) == branch {
		err = fmt.Errorf("%w: %s has no branch %s, which the request would go into; set `base` to a branch that it has, or push this one",
			worktree.ErrRemote, remote, branch)
	}
	if err != nil || tip == "" {
		return base, there, err
	}
	base.Remote = branch
	newer := c.Publish == journal.PublishRequest
	if !newer {
		newer, err = c.Repo.Contains(ctx, tip, base.Commit)
	}
	if newer {
		base.Commit = tip
	}
	return base, there, err
}

// Make makes the run's worktree, after it has removed those of earlier runs. Its waiting for a remote ends with waiting.
func (m *Maker) Make(
	ctx, waiting context.Context, run journal.Run, base worktree.Base, there map[string]string, warn func(sandboxes.Notice),
) (*worktree.Tree, error) {
	who, err := publish.Author(ctx, m.Config.Identity, m.Config.Tracker)
	if err != nil {
		return nil, err
	}
	notices, err := m.Spaces.Clear(ctx, run.Key, run.ID)
	for _, n := range notices {
		warn(n)
	}
	if err != nil {
		return nil, err
	}
	defer workspace.BeginWait(waiting, "fetching "+run.Branch+" from")()
	return m.Config.Repo.Add(waiting, worktree.Spec{
		Run: run.ID, Key: run.Key, Branch: run.Branch, Base: base, Fresh: run.Scratch || run.Fresh, ExcludedCommit: run.ExcludedCommit,
		Private: m.Spaces.Private(), Layers: m.Spaces.Layers(), Identity: who, RemoteTips: there,
	})
}

// Find returns the worktree of a run that has died; nil: it is lost.
func (m *Maker) Find(ctx context.Context, run journal.Run) (*worktree.Tree, error) {
	trees, err := m.Config.Repo.Trees(ctx)
	for _, t := range trees { // Trees leaves out unreadable ones
		if s := t.Spec(); s.Run == run.ID || run.Keep && s.Branch == run.Branch && !m.Spaces.Copies() {
			return t, nil
		}
	}
	return nil, err
}

// Kept returns the worktree of an earlier run on the run's branch. It returns nil if a new one has to be made: there is none, the
// sandbox has another isolation, or the sandbox copies the files, so that the worktree lacks the earlier commits. With dirty,
// uncommitted changes are no error.
func (m *Maker) Kept(ctx context.Context, run journal.Run, dirty bool) (*worktree.Tree, error) {
	if !run.Keep {
		return nil, nil
	}
	trees, err := m.Config.Repo.Trees(ctx)
	i := slices.IndexFunc(trees, func(t *worktree.Tree) bool { return t.Spec().Branch == run.Branch })
	if i < 0 {
		return nil, err
	}
	t := trees[i]
	if err := m.endEarlier(ctx, run, t); err != nil {
		return nil, err
	}
	look := t.Imported // files of an isolated agent are read only inside a sandbox
	if !t.Spec().Private {
		look = func(ctx context.Context) (worktree.Import, error) { return t.Import(ctx, nil) }
	}
	got, err := look(ctx)
	if err != nil {
		return nil, err
	}
	copies, same := m.Spaces.Copies(), t.Spec().Private == m.Spaces.Private() && (!t.Layered() || m.Spaces.Layers() != nil)
	unread := t.Spec().Private && got.Earlier.Commit != "" // perhaps they are still there
	switch {
	case (got.WIP != "" || unread) && !(dirty && (same || copies)):
		return nil, &DirtyError{Branch: run.Branch, Dir: t.Dir()}
	case copies || !same:
		return nil, nil
	}
	return t, nil
}

// endEarlier ends processes that earlier runs may have left in a kept worktree.
func (m *Maker) endEarlier(ctx context.Context, run journal.Run, t *worktree.Tree) error {
	runs, err := m.Config.Store.Find(ctx, journal.Query{Pool: m.Config.Pool, Key: run.Key})
	for _, r := range runs {
		left := r.SandboxMayRun && r.Tree == t.Dir()
		if r.ID == run.ID || !left && !r.Ended.IsZero() {
			continue
		}
		stays := t.Unsaved() && m.Spaces.Copies() // its sandbox alone has the unsaved work
		if err = m.Spaces.End(ctx, r.ID); err == nil && left && !stays {
			r.SandboxMayRun = false
			err = m.Config.Store.Save(ctx, r)
		}
		if err != nil {
			return fmt.Errorf("run %s may still be at work in %s: %w", r.ID, t.Dir(), err)
		}
	}
	return err
}

// DirtyError says that a kept worktree has uncommitted changes. It wraps worktree.ErrDirty.
type DirtyError struct{ Branch, Dir string }

func (e *DirtyError) Error() string {
	return fmt.Sprintf("the worktree of %s at %s has uncommitted changes", e.Branch, e.Dir)
}

// Unwrap returns worktree.ErrDirty.
func (*DirtyError) Unwrap() error { return worktree.ErrDirty }
