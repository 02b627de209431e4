package worktree

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/internal/branch"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
	"github.com/ralph-pool/ralph/worktree/record"
)

// Branch describes the branch and the saved changes of one key.
type Branch = branch.Branch

// Branches lists ralph's branches and saved changes, compared with base. The list is valid even with a [*record.Errors].
func (r *Repo) Branches(ctx context.Context, base Base) ([]Branch, error) {
	var recordsErr error
	all, err := branch.Lister{Git: r.git, Names: r.refNames}.List(ctx, base.Commit, func() (listed []branch.Tree) {
		var trees []*Tree
		trees, recordsErr = r.Trees(ctx)
		for _, t := range trees {
			listed = append(listed, branch.Tree{Dir: t.Dir(), Key: t.rec.Spec.Key, Branch: t.rec.Spec.Branch})
		}
		return listed
	})
	if err != nil {
		return nil, err
	}
	return all, recordsErr
}

// Drop deletes the key's branch and its refs, including saved changes and old tips. It fails with ErrMoved unless the
// branch (without a branch: the last imported commit) is still at tip. It refuses while a checkout has the branch.
func (r *Repo) Drop(ctx context.Context, key, tip string) error {
	if err := refname.CheckKey(key); err != nil {
		return fmt.Errorf("drop a branch: %w", err)
	}
	return r.locked(ctx, key, "drop "+key, func() error { return r.drop(ctx, key, tip) })
}

func (r *Repo) drop(ctx context.Context, key, tip string) error {
	ref := r.refNames.Branches + key
	refs, err := r.git.Refs(ctx, ref, r.refNames.Work(key), r.refNames.WIP(key), r.refNames.OldTipPrefix(key))
	if err != nil {
		return err
	}
	if at := branch.Tip(r.refNames, refs, ref, key); at != tip {
		return fmt.Errorf("%w: it is at %s, expected %s", ErrMoved, git.OrNothing(at), git.OrNothing(tip))
	}
	all, err := r.checkouts(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.Has(ref) {
			return c.Held(ref)
		}
	}
	trees, err := r.Trees(ctx)
	broken, unreadable := errors.AsType[*record.Errors](err)
	if err != nil && !unreadable {
		return err
	}
	if unreadable { // only unreadable records of this key matter
		for path, err := range broken.Records {
			name := strings.TrimSuffix(filepath.Base(path), record.Suffix)
			if strings.HasPrefix(name, record.FolderPrefix(key)) && len(name) == len(record.FolderPrefix(key)+git.Digest()) {
				return fmt.Errorf("%w: %w", ErrUnsaved, err)
			}
		}
	}
	for _, t := range trees {
		if t.Spec().Key == key {
			return fmt.Errorf("%w: the worktree %s still exists", ErrUnsaved, t.Dir())
		}
	}
	edits := make([]git.Edit, 0, len(refs))
	for ref, sha := range refs {
		edits = append(edits, git.Edit{Ref: ref, Old: sha})
	}
	return r.git.MoveRefs(ctx, edits...)
}
