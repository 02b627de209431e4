package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// HandBack is what the host has taken from the worktree.
type HandBack struct {
	Tip     string   // where refs/ralph/work/<key> and the branch now stand
	Commits []Commit // base..tip, oldest first, recomputed on the host
	New     int      // how many of them this hand-back brought
	WIP     string   // commit that holds the uncommitted changes; empty when there were none
}

// HandBack takes the commits and the uncommitted changes out of the worktree onto ralph's refs, and moves the branch.
// It changes no file of the worktree. It is idempotent, and also works on a tree whose process has died.
//
// The tip is the commit at the worktree's HEAD, whatever branch the agent has put it on, or the one that stands for it:
// new commits whose messages a forge would act on are written anew, without force. HEAD is put back on the branch unless
// a rebase, merge or the like is under way. Files that git ignores, and the history of repositories nested in the
// worktree, are not taken. Changes saved earlier stay saved: new ones take them as a second parent, and a clean worktree
// leaves them alone unless the tip has all of them.
//
// On an error, what could be taken has been taken, and the HandBack says so.
func (t *Tree) HandBack(ctx context.Context) (HandBack, error) {
	s := t.Spec()
	unlock, err := t.repo.lock(ctx, s.Key)
	if err != nil {
		return HandBack{}, fmt.Errorf("hand back %s: %w", s.Key, err)
	}
	defer unlock()
	got, err := t.handBack(ctx)
	if err != nil {
		return got, fmt.Errorf("hand back %s: %w", s.Key, t.repo.whyTooBig(err))
	}
	return got, nil
}

// Earlier is what the runs before this one have left between base and start. It is what HandBack would find as long as
// nothing has touched the worktree, and does not look at it.
func (t *Tree) Earlier(ctx context.Context) (HandBack, error) {
	s, err := t.readSpan(ctx, t.Start())
	if err != nil {
		return HandBack{}, fmt.Errorf("commits of earlier runs of %s: %w", t.Spec().Key, err)
	}
	return HandBack{Tip: s.tip, Commits: s.commits}, nil
}

func (t *Tree) handBack(ctx context.Context) (HandBack, error) {
	rebased := t.record().Rebasing != nil
	if err := t.undoRebase(ctx); err != nil {
		return HandBack{}, err
	}
	replayed := ""
	if rebased {
		var err error
		if replayed, err = t.hostHead(ctx); err != nil {
			return HandBack{}, err
		}
	}
	known, err := t.knownRefs(ctx)
	if err != nil {
		return HandBack{}, err
	}
	found, err := t.inspectAfter(ctx, replayed)
	if err != nil && ctx.Err() != nil {
		return HandBack{}, err
	}
	trouble := err
	if found.head == "" {
		return t.nothingMore(ctx, trouble)
	}
	var saved string
	if len(found.changes) > 0 {
		saved, err = t.saveChanges(ctx, found, known.wip)
		trouble = errors.Join(trouble, err)
	}
	got, err := t.takeIn(ctx, found, saved)
	return got, errors.Join(trouble, err)
}

// nothingMore is the hand-back of a worktree without a HEAD: the refs stay where they are.
func (t *Tree) nothingMore(ctx context.Context, trouble error) (HandBack, error) {
	known, err := t.readRefs(ctx)
	if err != nil {
		return HandBack{}, errors.Join(trouble, err)
	}
	got := HandBack{Tip: cmp.Or(known.branch, known.tip(t.Start()))}
	span, err := t.readSpan(ctx, got.Tip)
	got.Commits = span.commits
	return got, errors.Join(trouble, err)
}

// tip is the last commit that is known to have been handed back.
func (refs treeRefs) tip(start string) string {
	for _, tip := range []string{refs.work, refs.branch} {
		if tip != "" {
			return tip
		}
	}
	return start
}

// inspect looks at the worktree, and takes the force out of its new commits' messages. The error says what could not be
// seen.
func (t *Tree) inspect(ctx context.Context) (look, error) { return t.inspectAfter(ctx, "") }

// inspectAfter is inspect after a rebase of ralph's own: what was replayed was taken in before, may be a person's, and
// stays as it is. A process of the agent's that lives on may have committed more by now.
func (t *Tree) inspectAfter(ctx context.Context, replayed string) (look, error) {
	l, trouble := t.seek(ctx)
	if l.at = l.head; l.at == "" {
		return l, trouble
	}
	head, err := t.reword(ctx, l.at, replayed)
	if err != nil {
		return look{}, errors.Join(trouble, err)
	}
	l.head = head
	return l, trouble
}

// hostHead is where git's own record of the worktree is, which no agent with a private repository can move; empty where
// there is none.
func (t *Tree) hostHead(ctx context.Context) (string, error) {
	if _, admin := t.exists(); !admin {
		return "", nil
	}
	head, err := t.git().out(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if _, failed := errors.AsType[*GitError](err); failed {
		return "", nil
	}
	return head, err
}

// seek looks at the worktree, and finds HEAD's commit even where git status cannot work any more. The error says
// what could not be seen.
func (t *Tree) seek(ctx context.Context) (look, error) {
	files, admin := t.exists()
	if t.halfMade() || !admin && !files {
		return look{}, nil // nobody has worked in it, or all of it is removed
	}
	if !admin {
		return look{}, fmt.Errorf("git's record of the worktree %s is gone; its files are left as they are", t.Dir())
	}
	if t.record().Private {
		return t.inspectPrivate(ctx, files)
	}
	g := t.git()
	var l look
	var trouble error
	if files {
		if l, trouble = g.status(ctx); trouble == nil && l.head != "" {
			return l, nil
		}
	}
	if l.head == "" && ctx.Err() == nil {
		head, err := t.hostHead(ctx)
		if err != nil {
			return l, err
		}
		l.head = head
	}
	if l.head == "" {
		lost, err := t.lastKnownHead(ctx)
		if err != nil {
			return l, err
		}
		l.head, l.branch = lost, ""
		if lost == "" && trouble == nil {
			trouble = fmt.Errorf("HEAD of the worktree %s is at no commit; put it back with: git -C %s switch %s",
				t.Dir(), quote(t.Dir()), t.Spec().Branch)
		}
	}
	return l, trouble
}

// takeIn puts a tip and saved changes onto the key's refs: all of them or none. It does not care where they come from.
func (t *Tree) takeIn(ctx context.Context, found look, saved string) (HandBack, error) {
	s := t.Spec()
	known, err := t.knownRefs(ctx)
	if err != nil {
		return HandBack{}, err
	}
	attached := found.branch == s.Branch && !t.record().Private
	if attached {
		known.branch = found.at // HEAD is the branch
	} else if known, err = t.readRefs(ctx); err != nil {
		return HandBack{}, err
	}
	span, err := t.readSpan(ctx, found.head)
	if err != nil {
		return HandBack{}, err
	}
	edits, err := t.tipEdits(ctx, span, known, found.at)
	if err != nil {
		return HandBack{}, err
	}
	next := treeRefs{branch: found.head, work: found.head, wip: known.wip}
	if saved == "" && len(found.changes) == 0 && known.wip != "" {
		done, err := t.repo.sameTree(ctx, known.wip, found.head)
		if err != nil {
			return HandBack{}, err
		}
		if done {
			edits = append(edits, refEdit{ref: wipRef(s.Key), old: known.wip})
			next.wip = ""
		}
	}
	if saved != "" && saved != known.wip {
		edits = append(edits, refEdit{ref: wipRef(s.Key), new: saved, old: known.wip})
		next.wip = saved
	}
	got := HandBack{Tip: found.head, Commits: span.commits, WIP: saved}
	if got.New, err = t.repo.countNew(ctx, span, known.tip(t.Start())); err != nil {
		return HandBack{}, err
	}
	if err := t.repo.git.moveRefs(ctx, "hand back run "+s.Run, edits...); err != nil {
		t.setRefs(nil)
		return HandBack{}, err
	}
	t.setRefs(&next)
	switch {
	case found.partial:
	case t.record().Private:
		t.attachPrivate(found.head)
	case !attached && !t.midOperation():
		return got, t.attach(ctx)
	}
	return got, nil
}

// tipEdits moves the branch and the work ref to the span's tip and keeps the tips that it leaves behind, but for the
// commit that the tip stands for.
func (t *Tree) tipEdits(ctx context.Context, span span, known treeRefs, at string) ([]refEdit, error) {
	s := t.Spec()
	var edits []refEdit
	kept := ""
	for _, move := range []refEdit{{ref: workRef(s.Key), old: known.work}, {ref: branchRef(s.Branch), old: known.branch}} {
		if move.old == span.tip {
			continue
		}
		edits = append(edits, refEdit{ref: move.ref, new: span.tip, old: move.old})
		if move.old == "" || move.old == kept || move.old == at {
			continue
		}
		inside, err := t.repo.spanHas(ctx, span, move.old)
		if err != nil {
			return nil, err
		}
		if !inside {
			kept = move.old
			edits = append(edits, refEdit{ref: oldRef(s.Key, move.old), new: move.old, keep: true})
		}
	}
	return edits, nil
}

// attach puts HEAD on the branch, which is at the same commit, so that neither index nor files change.
func (t *Tree) attach(ctx context.Context) error {
	if _, admin := t.exists(); !admin {
		return nil
	}
	_, err := t.git().out(ctx, "symbolic-ref", "-m", "ralph: back to the branch", "HEAD", branchRef(t.Spec().Branch))
	if err != nil {
		return fmt.Errorf("put HEAD back on %s: %w", t.Spec().Branch, err)
	}
	return nil
}

// midOperation reports a rebase, merge or the like that has not ended.
func (t *Tree) midOperation() bool {
	for _, name := range operations() {
		if _, err := os.Lstat(filepath.Join(t.record().GitDir, name)); err == nil {
			return true
		}
	}
	return false
}

// operations are the files of a git directory that exist while a rebase, merge or the like is under way.
func operations() []string {
	return []string{
		"rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "sequencer",
	}
}
