package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/importer"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
	"github.com/ralph-pool/ralph/worktree/internal/start"
	"github.com/ralph-pool/ralph/worktree/record"
)

// Add makes the worktree. If the branch, here or on the remote, already has commits that Base lacks, the run continues from
// them. Add first imports the unsaved work of earlier runs of the key. If that would take a sandbox, it moves that work to
// a folder that ralph never deletes. The caller holds the claim, so those runs have ended.
func (r *Repo) Add(ctx context.Context, s Spec) (t *Tree, err error) {
	s = s.WithBranch(r.BranchName(s.Key))
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("add worktree: %w", err)
	}
	err = r.locked(ctx, s.Key, "add worktree for "+s.Key, func() (err error) {
		if err = r.clearEarlierRuns(ctx, s); err == nil {
			t, err = r.add(ctx, s)
		}
		return err
	})
	return t, err
}

// clearEarlierRuns imports the work of earlier runs of the key and removes their worktrees.
func (r *Repo) clearEarlierRuns(ctx context.Context, s Spec) error {
	trees, err := r.Trees(ctx)
	if err != nil && ctx.Err() != nil {
		return err
	}
	// A broken record of another key must not stop this run.
	for _, t := range trees {
		if old := t.rec.Spec; old.Key != s.Key || s.Detached && (!old.Detached || old.Run == s.Run || old.ParentRun == s.ParentRun && s.ParentRun != "") {
			continue
		}
		if err := t.importAndDiscard(ctx); err != nil {
			return fmt.Errorf("remains of run %s in %s: %w", t.rec.Spec.Run, t.Dir(), err)
		}
	}
	return nil
}

func (t *Tree) importAndDiscard(ctx context.Context) error {
	if !t.Unsaved() {
		return t.discard()
	}
	if t.rec.Spec.Private {
		if rec := t.record(); rec.MayRetry() {
			return fmt.Errorf("%w for now: %s", ErrUnsaved, rec.Failure)
		}
		return t.setAside(errors.New("the run's sandbox is gone"))
	}
	if _, err := t.importWork(ctx, nil); err != nil {
		return err
	}
	return t.discard()
}

func (r *Repo) add(ctx context.Context, s Spec) (*Tree, error) {
	t := &Tree{repo: r, name: s.Folder(), rec: record.Record{Spec: s, Start: s.Base.Commit, Made: r.now(), Incomplete: true}}
	if s.Private {
		t.rec.History = cmp.Or(s.Trusted(), s.Base.Commit) // the store of the base's objects is shared by many checkouts
	} else {
		t.rec.GitDir = filepath.Join(r.location.Common, "worktrees", t.name)
	}
	var edits []git.Edit
	if !s.Detached {
		var err error
		if edits, err = t.planStart(ctx); err != nil {
			return nil, err
		}
	}
	if s.Private {
		t.rec.FoldersCommit = t.rec.Start
	}
	if err := t.updateRecord(func(*record.Record) {}); err != nil {
		return nil, err
	}
	err := r.git.MoveRefs(ctx, edits...)
	if err == nil {
		err = t.recordRefs(ctx)
	}
	if err == nil && s.Private {
		err = t.makePrivate(ctx)
	} else if err == nil {
		err = t.makeLinked(ctx)
	}
	if err == nil {
		// This write need not survive a power loss: an existing index also shows that the tree is complete.
		err = t.saveRecord(func(rec *record.Record) { rec.Incomplete = false }, false)
	}
	if t.rec.Start == s.Trusted() {
		err = importer.MarkBaseFailure(err)
	}
	if err != nil {
		return nil, errors.Join(err, t.discard())
	}
	return t, nil
}

// planStart picks the commit at which the run starts, and returns the ref updates for it.
func (t *Tree) planStart(ctx context.Context) ([]git.Edit, error) {
	r, s := t.repo, t.rec.Spec
	remoteTips := s.RemoteTips
	if remoteTips == nil {
		var err error
		if remoteTips, err = r.RemoteTips(ctx, s.Branch); err != nil {
			return nil, err
		}
	}
	remote := remoteTips[s.Branch]
	if _, err := r.dropBroken(ctx, s); err != nil {
		return nil, err
	}
	refs, err := r.git.Refs(ctx, refname.Branch(s.Branch), r.refNames.Work(s.Key), r.refNames.WIP(s.Key), r.refNames.OldTipPrefix(s.Key))
	if err != nil {
		return nil, err
	}
	if refs[refname.Branch(s.Branch)] != "" {
		if err := r.freeBranch(ctx, s); err != nil {
			return nil, err
		}
	}
	p := start.Planner{Git: r.git, Names: r.refNames, Spec: s, Refs: refs, Remote: remote}
	at, err := p.Pick(ctx)
	if err != nil {
		return nil, err
	}
	t.rec.Start, t.rec.Lease, t.rec.Earlier = at, remote, refs[r.refNames.Work(s.Key)]
	t.rec.MadeBranch = refs[refname.Branch(s.Branch)] == ""
	if t.rec.RemoteConfig, err = r.remote.ConfigDigest(ctx); err != nil {
		return nil, err
	}
	return p.Edits(ctx, at)
}
