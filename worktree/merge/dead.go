package merge

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/worktree/checkout"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/leftover"
)

// Leftovers lists the locks of dead ralphs on the indexes of checkouts. To remove one is to undo or complete what was begun there,
// whatever the user has checked out since.
func (r Repo) Leftovers(ctx context.Context) (all []leftover.Leftover, err error) {
	places, err := r.Checkouts(ctx)
	for _, c := range places {
		if c.GitDir == "" || filepath.Dir(c.Dir) == r.Runs {
			continue
		}
		path := indexOf(c.GitDir) + ".lock"
		lock, m := takeOver(path)
		if m == nil {
			continue
		}
		_ = lock.Close()
		all = append(all, leftover.Leftover{
			Kind: leftover.Hold, Where: path, Safe: true,
			Detail: fmt.Sprintf("of %s from %s to %s", git.DisplayName(m.ref), git.Short(m.old), git.Short(m.new)),
			Remove: func(ctx context.Context) (string, error) { return "", r.end(context.WithoutCancel(ctx), c) },
		})
	}
	return all, err
}

// end ends what a dead ralph has begun in a checkout.
func (r Repo) end(ctx context.Context, place checkout.Checkout) error {
	index := indexOf(place.GitDir)
	lock, m := takeOver(index + ".lock")
	if m == nil { // another ralph has ended it
		return nil
	}
	f, err := r.filesOf(ctx, place, *m, m.new)
	if err != nil {
		_ = lock.Close()
		return fmt.Errorf("end the merge into %s: %w", git.DisplayName(m.ref), err)
	}
	h := &hold{files: f, index: index, lock: lock}
	if err := h.finish(ctx, *m); err != nil {
		h.dropNext()
		_ = lock.Close() // the lock stays, because it alone says what was begun
		return fmt.Errorf("end the merge into %s in %s: %w", git.DisplayName(m.ref), place.Dir, err)
	}
	h.release()
	return nil
}

// Owns reports whether a lock file on an index is a ralph's, living or dead.
func Owns(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	text, err := os.ReadFile(path)
	before, _, _ := strings.Cut(holdText, "%")
	return err == nil && strings.HasPrefix(string(text), before)
}
