package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ralph-pool/ralph/worktree/checkout"
	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/importer"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
	"github.com/ralph-pool/ralph/worktree/internal/traces"
	"github.com/ralph-pool/ralph/worktree/record"
	"github.com/ralph-pool/ralph/worktree/saved"
	"github.com/ralph-pool/ralph/worktree/span"
)

// Import is the result of an import: what ralph's refs have of a run's work.
type Import struct {
	Tip     string        // tip of the branch and of refs/ralph/work/<key>
	Commits []Commit      // base..tip, oldest first, computed on the host
	New     int           // number of commits that this import added
	WIP     string        // commit with the uncommitted changes; empty when there are none
	Earlier saved.Earlier // without WIP: changes of an earlier run that are still saved
	Others  []string      // commits of other branches, tags and stashes of the private repository, kept under refs/ralph/old
	// Gitlinks are the paths in Tip of nested repositories that no .gitmodules names. No commit has their files; WIP does.
	Gitlinks []string
	// ForgeCommands lists the run's commits whose messages would act on a forge; see Tree.Finish.
	ForgeCommands []Commit
	Controls      bool // messages or names of the run's commits have control characters; see Tree.Finish
}

// foundWork describes the work found in a worktree.
type foundWork struct {
	tip             string   // the commit of HEAD, or the best substitute
	otherCommits    []string // commits that are not in tip
	tree            string   // the tree object of the files, if it differs from that of tip
	filesUnread     bool     // the files were not read
	mayHaveGitlinks bool     // a commit may name another repository
}

// Import brings the commits and the uncommitted changes of the worktree onto ralph's refs, and moves the branch. It changes
// no file and is idempotent. It also works on a tree whose process has died. No process of the agent may be running.
//
// A private tree is imported through its sandbox: in runs git there, and the host parses the output as data (package
// importer). Other trees are read in place, and in is nil.
//
// The tip is the commit at the worktree's HEAD, whatever branch the agent has checked out. Ignored files and the history of
// repositories nested in the worktree are not imported. Changes saved earlier become a second parent of newly saved ones. A
// clean worktree keeps the saved changes unless the tip contains all of them.
//
// If Import fails, the returned Import lists what was imported nevertheless. The tree then still counts as unsaved.
func (t *Tree) Import(ctx context.Context, in Inside) (result Import, err error) {
	s := t.Spec()
	err = t.repo.locked(ctx, s.Key, "import "+s.Key, func() (err error) {
		if s.Detached {
			return errDetached
		}
		if _, err := os.Lstat(t.repo.records.Path(t.name)); errors.Is(err, fs.ErrNotExist) {
			return errors.New("the worktree was removed")
		}
		result, err = t.importWork(ctx, in)
		return err
	})
	return result, err
}

// importWork is Import with the key's lock held. It stores success or failure in the record.
func (t *Tree) importWork(ctx context.Context, in Inside) (Import, error) {
	result, err := t.tryImport(ctx, in)
	// The user may have pruned objects without a ref, or this import's. Start no git after other errors: it opens a pipe.
	if git.Failed(err) && ctx.Err() == nil {
		dropped, errDrop := t.repo.dropBroken(ctx, t.Spec())
		if errDrop == nil && (dropped || len(git.ObjectsIn(err)) > 0) {
			result, err = t.tryImport(ctx, in)
		}
	}
	if _, gone := os.Lstat(t.repo.location.Common); err != nil && errors.Is(gone, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", importer.ErrAway, err)
	}
	rec := t.record()
	switch {
	case err == nil && (rec.InUse || rec.Failures != importer.Failures{}):
		// Not durable: a flag that stays set costs one more import.
		err = t.saveRecord(func(rec *record.Record) { rec.InUse, rec.Failures = false, importer.Failures{} }, false)
	case err != nil && ctx.Err() == nil && !errors.Is(err, errNoSandbox):
		err = errors.Join(err, t.saveRecord(func(r *record.Record) { r.Add(err, t.repo.now()) }, false))
	}
	return result, err
}

// Unlock removes the locks that a killed git of the run has left in a linked worktree. No process of the run may be alive.
func (t *Tree) Unlock(ctx context.Context) { traces.Unlock(ctx, t.record().GitDir, t.Spec().Run) }

func (t *Tree) tryImport(ctx context.Context, in Inside) (Import, error) {
	if err := t.checkGitFiles(); err != nil {
		return Import{}, err
	}
	if err := t.finishMove(ctx, false); err != nil {
		return Import{}, err
	}
	refs, err := t.readRefs(ctx)
	if err != nil {
		return Import{}, err
	}
	var f foundWork
	hasFiles, hasEntry := t.exists()
	rec := t.record()
	switch {
	case t.isHalfMade() || !hasEntry && !hasFiles: // nobody has worked in it, or all of it is deleted
	case !hasEntry:
		err = fmt.Errorf("git's record of the worktree %s is gone; its files are left as they are", t.Dir())
	case !rec.Spec.Private:
		if rec.InUse { // otherwise nobody has worked here for ralph, and a lock belongs to a person
			t.Unlock(ctx)
		}
		f, err = t.readLinked(ctx)
	case !rec.Used || in == nil && !rec.InUse: // nobody has worked here since the last import
	case in == nil:
		err = errNoSandbox
	default:
		f, err = t.readPrivate(ctx, in, refs)
	}
	if err != nil && ctx.Err() != nil {
		return Import{}, err
	}
	readErr := err
	if f.tip == "" && f.tree == "" {
		result := Import{Tip: cmp.Or(refs.branch, refs.tip(rec.Start))}
		sp, err := t.readSpan(ctx, result.Tip)
		result.Commits = sp.Commits
		return result, errors.Join(readErr, err)
	}
	if f.tip == "" || f.tip == rec.Replaced {
		f.tip = cmp.Or(refs.branch, refs.tip(rec.Start))
		f.filesUnread = f.filesUnread || f.tree == ""
	}
	result, err := t.moveKeyRefs(ctx, f, refs)
	return result, errors.Join(readErr, err)
}

// moveKeyRefs moves the key's refs to the work found, in one transaction.
func (t *Tree) moveKeyRefs(ctx context.Context, f foundWork, refs treeRefs) (Import, error) {
	s, rec := t.Spec(), t.record()
	if !rec.Spec.Private && f.tip != "" {
		// HEAD may be on the branch, and the agent may have moved it.
		if now, err := t.readRefs(ctx); err != nil {
			return Import{}, err
		} else {
			refs = now
		}
	}
	sp, err := t.readSpan(ctx, f.tip)
	if err != nil {
		return Import{}, err
	}
	result := Import{Tip: f.tip, Commits: sp.Commits, Others: f.otherCommits}
	if f.mayHaveGitlinks && len(sp.Commits) > 0 {
		if result.Gitlinks, err = diff.Gitlinks(ctx, t.repo.git, sp.Base, sp.Tip); err != nil {
			return Import{}, err
		}
		if len(result.Gitlinks) > 0 && !rec.Spec.Private && f.tree == "" && !f.filesUnread { // git status does not look into nested repositories
			if f.tree, err = t.snapshot(ctx, f.tip); err != nil {
				return Import{}, err
			}
		}
	}
	edits, err := t.tipEdits(ctx, sp, refs, "")
	if err != nil {
		return Import{}, err
	}
	for _, c := range f.otherCommits {
		edits = append(edits, git.Edit{Ref: t.repo.refNames.Other(s.Key, c), New: c, Any: true})
	}
	if result.WIP, err = t.commitFiles(ctx, f, refs.wip); err != nil {
		return Import{}, err
	}
	switch {
	case result.WIP != "" && result.WIP != refs.wip:
		edits = append(edits, git.Edit{Ref: t.repo.refNames.WIP(s.Key), New: result.WIP, Old: refs.wip})
	case result.WIP == "" && !f.filesUnread && refs.wip != "":
		var committed bool
		if committed, result.Earlier, err = saved.Before(ctx, t.repo.git, refs.wip, s.Run, f.tip); err != nil {
			return Import{}, err
		}
		if committed {
			edits = append(edits, git.Edit{Ref: t.repo.refNames.WIP(s.Key), New: result.Earlier.Commit, Old: refs.wip})
		}
	}
	if result.New, err = t.repo.spans.CountNew(ctx, sp, refs.tip(rec.Start)); err != nil {
		return Import{}, err
	}
	if err := t.guard().MoveRefs(ctx, edits...); err != nil {
		return Import{}, err
	}
	if !rec.Spec.Private && !f.filesUnread {
		if err := t.Attach(ctx); err != nil {
			return result, err
		}
	}
	err = t.fillActing(ctx, sp, &result)
	return result, err
}

// tipEdits returns the updates that move branch and work ref to the span's tip, and keep old tips that it does not replace. A
// branch that another checkout has stays: its index and files would revert the new commits. MoveBranch moves it later, unless the
// user has moved it meanwhile.
func (t *Tree) tipEdits(ctx context.Context, sp span.Span, refs treeRefs, replaced string) ([]git.Edit, error) {
	s := t.Spec()
	var edits []git.Edit
	kept, held := "", (*checkout.HeldError)(nil)
	if refs.branch != "" && refs.branch != sp.Tip && !refs.moved {
		if err := t.guard().Check(ctx); err != nil && !errors.As(err, &held) {
			return nil, err
		}
	}
	for _, move := range []git.Edit{{Ref: t.repo.refNames.Work(s.Key), Old: refs.work}, {Ref: refname.Branch(s.Branch), Old: refs.branch}} {
		if move.Old == sp.Tip {
			continue
		}
		if isBranch := move.Ref == refname.Branch(s.Branch); isBranch && (held != nil || refs.moved) {
			if refs.work != "" && !refs.left && !refs.moved { // otherwise it is marked already
				edits = append(edits, git.Edit{Ref: t.repo.refNames.Left(s.Key, refs.work), New: refs.work, Any: true})
			}
			continue
		} else if isBranch && refs.left {
			edits = append(edits, git.Edit{Ref: t.repo.refNames.Left(s.Key, refs.branch), Old: refs.branch})
		}
		edits = append(edits, git.Edit{Ref: move.Ref, New: sp.Tip, Old: move.Old})
		if move.Old == "" || move.Old == kept || move.Old == replaced {
			continue
		}
		contained, err := t.repo.spans.Has(ctx, sp, move.Old)
		if err != nil {
			return nil, err
		}
		if !contained {
			kept = move.Old
			edits = append(edits, git.Edit{Ref: t.repo.refNames.OldTip(s.Key, move.Old), New: move.Old, Any: true})
		}
	}
	return edits, nil
}

// commitFiles commits the uncommitted changes, without a ref, and returns the previous commit if it is the same.
func (t *Tree) commitFiles(ctx context.Context, f foundWork, previous string) (string, error) {
	if f.tree == "" {
		return "", nil
	}
	parents := []string{f.tip}
	if previous != "" {
		out, err := t.repo.git.Output(ctx, "rev-parse", previous+"^{tree}", previous+"^1")
		if err != nil {
			return "", fmt.Errorf("read saved changes: %w", err)
		}
		if out == f.tree+"\n"+f.tip {
			return previous, nil
		}
		parents = append(parents, previous)
	}
	commit, err := t.repo.objects.Commit(f.tree, parents, saved.Message(t.Spec().Run), t.repo.now())
	if err != nil {
		return "", fmt.Errorf("save uncommitted changes: %w", err)
	}
	return commit, nil
}

// fillActing fills in the commits whose messages the agent may have to correct.
func (t *Tree) fillActing(ctx context.Context, sp span.Span, result *Import) error {
	ownCommits, err := t.ownCommits(ctx, sp, false)
	if err != nil {
		return err
	}
	acting := map[string]bool{}
	for _, commit := range ownCommits {
		acting[commit] = sp.ForgeCommands[commit]
		result.Controls = result.Controls || sp.Controls[commit]
	}
	for _, c := range sp.Commits {
		if acting[c.SHA] {
			result.ForgeCommands = append(result.ForgeCommands, c)
		}
	}
	return nil
}

// Earlier returns the work of earlier runs between base and start. It does not read the files. Import returns the same
// while nobody has changed the tree.
func (t *Tree) Earlier(ctx context.Context) (Import, error) {
	s, err := t.readSpan(ctx, t.Start())
	if err != nil {
		return Import{}, fmt.Errorf("commits of earlier runs of %s: %w", t.Spec().Key, err)
	}
	return Import{Tip: s.Tip, Commits: s.Commits}, nil
}

// Imported returns the run's work on ralph's refs. It does not read the files.
func (t *Tree) Imported(ctx context.Context) (Import, error) {
	refs, err := t.readRefs(ctx)
	if err != nil {
		return Import{}, err
	}
	sp, err := t.readSpan(ctx, refs.tip(t.Start()))
	if err != nil {
		return Import{}, fmt.Errorf("imported commits of %s: %w", t.Spec().Key, err)
	}
	result := Import{Tip: sp.Tip, Commits: sp.Commits}
	if result.WIP, result.Earlier, err = saved.Whose(ctx, t.repo.git, refs.wip, t.Spec().Run); err != nil {
		return Import{}, fmt.Errorf("saved changes of %s: %w", t.Spec().Key, err)
	}
	if len(sp.Commits) > 0 {
		if result.Gitlinks, err = diff.Gitlinks(ctx, t.repo.git, sp.Base, sp.Tip); err != nil {
			return result, err
		}
	}
	return result, t.fillActing(ctx, sp, &result)
}
