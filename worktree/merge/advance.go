package merge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/worktree/checkout"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/operation"
	"github.com/ralph-pool/ralph/worktree/record"
)

// advance moves the branch together with its checkout, and changes nothing if a file of the user's is in the way. It holds the
// lock of the index meanwhile, so that no other git changes the checkout, and moves the branch after the files: a crash leaves a
// checkout ahead of its branch, not one that would revert the branch. It fails with errLeft if the checkout does not have the
// branch any more.
func (r Repo) advance(ctx context.Context, place checkout.Checkout, m move, tip string) error {
	f, err := r.filesOf(ctx, place, m, tip)
	if err != nil {
		return err
	}
	h, err := r.hold(ctx, f, place, m)
	if err != nil {
		return err
	}
	defer h.release()
	if has, err := has(ctx, f.git, place, m.ref); err != nil {
		return err
	} else if !has {
		return errLeft
	}
	if err := r.expectTip(ctx, m.ref, m.old); err != nil {
		return err
	}
	if err := operation.CheckNone(ctx, f.git, place.GitDir, place.Dir); err != nil {
		return err
	}
	if err := h.update(ctx, m); err != nil {
		if _, blocked := errors.AsType[*blockedError](err); !blocked {
			return h.putBack(ctx, m, err)
		}
		return dirty(err, place.Dir, fmt.Sprintf(" && git -C %s merge %s", git.Quote(place.Dir), tip))
	}
	// The user waits for the lock of the index meanwhile.
	short := f.git.WithTimeout(time.Minute).With(fmt.Sprintf("GIT_CONFIG_PARAMETERS='core.filesRefLockTimeout=%d'", patience.Milliseconds()))
	if err := short.MoveRefs(ctx, git.Edit{Ref: m.ref, New: m.new, Old: m.old}); err != nil {
		return h.putBack(ctx, m, err)
	}
	// A new branch at the same commit needs no lock of the index.
	if has, err := has(ctx, f.git, place, m.ref); err == nil && !has {
		return h.undo(ctx, m)
	}
	return nil
}

// has looks again whether a checkout has the branch.
func has(ctx context.Context, g git.Runner, place checkout.Checkout, ref string) (bool, error) {
	now, err := place.Now(ctx, g)
	return now.Branch == ref && now.Begun[ref] == "", err
}

// filesOf pins git to a checkout, without the user's filters. It fails with ErrFiltered if the move needs one of them.
func (r Repo) filesOf(ctx context.Context, place checkout.Checkout, m move, tip string) (f files, err error) {
	dir := place.Dir
	if place.GitDir == "" {
		return f, fmt.Errorf("the git directory of the checkout %s is not known; check: git worktree list", dir)
	}
	g, err := git.New(r.State).ShareCache(r.Git).Pin(place.GitDir, r.Common, dir).WithIdent(ctx)
	if err != nil {
		return f, err
	}
	config, err := g.Config(ctx)
	if err != nil {
		return f, err
	}
	safe, filters := g.OwnFilters(config, dir)
	switch path, err := g.Filtered(ctx, filters, filepath.Join(r.Temp, "index-"+rand.Text()), m.old, m.new); {
	case err != nil:
		return f, fmt.Errorf("look for filters: %w", err)
	case path != "":
		return f, fmt.Errorf("%w would run on %s in %s; if its program is not a file of the commits, type: git -C %s merge %s",
			ErrFiltered, git.Printable(path), dir, git.Quote(dir), tip)
	}
	return files{git: g.With(safe...), dir: dir, temp: r.Temp}, nil
}

// dirty describes a [*blockedError], and names a command that puts the files away and then goes on; other errors stay.
func dirty(err error, dir, then string) error {
	blocked, ok := errors.AsType[*blockedError](err)
	if !ok {
		return err
	}
	const most = 10
	stash := "stash push --all --"
	for _, path := range blocked.paths {
		if stash += " " + git.Quote(path); len(blocked.paths) > most || path != git.Printable(path) || strings.ContainsAny(path, `:*?[\`) {
			stash = "stash --include-untracked"
			break
		}
	}
	return fmt.Errorf("%w in %s (%s) are in the way; commit them, or stash them with: git -C %s %s%s",
		ErrDirty, dir, git.Printable(blocked.paths[0]), git.Quote(dir), stash, then)
}

// Check fails if MergeInto would refuse because of a checkout that has the branch. tip may be based on an older commit.
func (r Repo) Check(ctx context.Context, b record.Base, tip string) error {
	place, err := r.checkoutOf(ctx, b.Ref)
	if err == nil && place.Dir != "" && place.GitDir != "" {
		err = r.checkFiles(ctx, place, b, tip)
	}
	if err != nil {
		return fmt.Errorf("merge into %s: %w", b.Name, err)
	}
	return nil
}

func (r Repo) checkFiles(ctx context.Context, place checkout.Checkout, b record.Base, tip string) error {
	from, err := r.Git.Output(ctx, "merge-base", "--end-of-options", b.Commit, tip)
	if git.ExitCode(err) == 1 {
		return nil // unrelated: nothing will be moved
	}
	if err != nil {
		return err
	}
	m := move{b.Ref, b.Commit, tip}
	f, err := r.filesOf(ctx, place, m, tip)
	if errors.Is(err, ErrFiltered) {
		return nil // the merge says so, if it comes to that
	}
	if err != nil {
		return err
	}
	if exists(indexOf(place.GitDir) + ".lock") {
		h, err := r.hold(ctx, f, place, m)
		if err != nil {
			return err
		}
		h.release()
	}
	theirs, err := f.changes(ctx, from, tip)
	if err != nil {
		return err
	}
	all, err := f.changes(ctx, b.Commit, tip)
	if err != nil {
		return err
	}
	brought := map[string]bool{}
	for _, c := range theirs {
		brought[c.path] = true
	}
	found, err := f.look(ctx, indexOf(place.GitDir), slices.DeleteFunc(all, func(c change) bool { return !brought[c.path] }))
	if err == nil && len(found.blocked) > 0 {
		return dirty(&blockedError{found.blocked}, place.Dir, "")
	}
	return err
}

// follow looks for a checkout to which the user has switched the branch while it was moved, and brings it forward. Such a git has
// read the old commit; it then locks and writes the index, and last HEAD. So follow waits until all of them have been at rest for a
// while. It fails with ErrBehind.
func (r Repo) follow(ctx context.Context, m move, tip string) error {
	ctx = context.WithoutCancel(ctx)
	all, err := r.Checkouts(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBehind, err)
	}
	all = slices.DeleteFunc(all, func(c checkout.Checkout) bool { return c.GitDir == "" || filepath.Dir(c.Dir) == r.Runs })
	for _, c := range all {
		_ = r.end(ctx, c) // a dead ralph's lock never goes; a sweep and `ralph clean --repair` report what cannot be ended
	}
	last, done := "", map[string]bool{}
	for waited, rest := time.Duration(0), time.Duration(0); waited < patience && rest < atRest; waited += glance {
		if now := traces(all); now != last || strings.Contains(now, "locked") {
			last, rest = now, 0
		}
		for _, c := range all {
			if on, err := has(ctx, r.Git, c, m.ref); err != nil || !on || done[c.Dir] || exists(indexOf(c.GitDir)+".lock") {
				continue
			}
			done[c.Dir] = true
			if err := r.bringForward(ctx, c, m, tip); err != nil {
				if undone := r.findUndone(ctx, m); undone != nil {
					return undone
				}
				return fmt.Errorf("%w: %w; before you commit there, type: git -C %s switch --detach %s && git -C %s switch --merge %s",
					ErrBehind, err, git.Quote(c.Dir), m.old, git.Quote(c.Dir), git.Quote(git.DisplayName(m.ref)))
			}
		}
		_ = r.sleep(ctx, glance) // ctx does not end
		rest += glance
	}
	return r.findUndone(ctx, m)
}

// findUndone fails with ErrUndone if a commit of the user's on top of the move has files as they were before: it was made in a
// checkout that has got the branch just before ralph could bring it forward.
func (r Repo) findUndone(ctx context.Context, m move) error {
	refs, err := r.Git.Refs(ctx, m.ref)
	top := refs[m.ref]
	if err != nil || top == "" || top == m.new {
		return nil //nolint:nilerr // the branch was moved; only this question stays open
	}
	f := files{git: r.Git}
	ours, err := f.changes(ctx, m.old, m.new)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	theirs, err := f.changes(ctx, m.new, top)
	if on, errOn := r.Git.Contains(ctx, top, m.new); err != nil || errOn != nil || !on {
		return nil //nolint:nilerr // see above
	}
	before := map[string]entry{}
	for _, c := range ours {
		before[c.path] = c.old
	}
	undone := slices.DeleteFunc(theirs, func(c change) bool { was, moved := before[c.path]; return !moved || was != c.new })
	if len(undone) == 0 {
		return nil
	}
	return fmt.Errorf("%w in time: the commit %s on top of it %w in %d of its %d files, such as %s; to see what is missing: git -C %s diff %s %s",
		ErrBehind, git.Short(top), ErrUndone, len(undone), len(ours), git.Printable(undone[0].path), git.Quote(r.Top), git.Short(top), git.Short(m.new))
}

// traces describes what git changes last in checkouts when it switches branches.
func traces(all []checkout.Checkout) string {
	var b strings.Builder
	for _, c := range all {
		index := indexOf(c.GitDir)
		for _, path := range []string{index, filepath.Join(c.GitDir, "HEAD")} {
			if info, err := os.Lstat(path); err == nil {
				fmt.Fprintln(&b, info.ModTime().UnixNano(), info.Size())
			}
		}
		if exists(index + ".lock") {
			b.WriteString("locked ")
		}
	}
	return b.String()
}

// bringForward updates a checkout of the branch whose index is still at the commit before the move.
func (r Repo) bringForward(ctx context.Context, place checkout.Checkout, m move, tip string) error {
	f, err := r.filesOf(ctx, place, m, tip)
	if err != nil {
		return err
	}
	changes, err := f.changes(ctx, m.old, m.new)
	if err != nil {
		return err
	}
	if found, err := f.look(ctx, indexOf(place.GitDir), changes); err != nil || !found.stale {
		return err
	}
	h, err := r.hold(ctx, f, place, m)
	if err != nil {
		return err
	}
	defer h.release()
	if has, err := has(ctx, f.git, place, m.ref); err != nil || !has {
		return err
	}
	if err := r.expectTip(ctx, m.ref, m.new); err != nil {
		return err
	}
	if err := h.update(ctx, m); err != nil {
		if blocked, ok := errors.AsType[*blockedError](err); ok {
			return fmt.Errorf("%w in %s (%w) are in the way", ErrDirty, place.Dir, blocked)
		}
		return err
	}
	return nil
}
