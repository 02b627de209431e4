package git

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/worktree/git/internal/reflock"
)

// Edit moves one ref from exactly Old to New. With an empty Old the ref must not exist; an empty New deletes it.
type Edit struct {
	Ref, New, Old string
	Any           bool // move the ref from any value; Old is ignored
}

// Refs reads refs by their full names. A name with a slash at the end stands for all refs below it; no names stand for all
// refs. The map lacks refs that do not exist.
func (g Runner) Refs(ctx context.Context, names ...string) (map[string]string, error) {
	if refs, ok := (refFiles{common: g.common}).read(names); ok && ctx.Err() == nil {
		return refs, nil
	}
	return g.listRefs(ctx, names...)
}

// RefsExcept reads all refs except those below a folder of refs, such as "refs/notes/".
func (g Runner) RefsExcept(ctx context.Context, folder string) (map[string]string, error) {
	linked := slices.ContainsFunc(g.env, func(kv string) bool { return strings.HasPrefix(kv, "GIT_COMMON_DIR=") }) // a linked checkout has its own refs
	if refs, ok := (refFiles{g.common, g.cache.seenRefs()}).readExcept(folder); ok && !linked && ctx.Err() == nil {
		return refs, nil
	}
	refs, err := g.listRefs(ctx)
	maps.DeleteFunc(refs, func(ref, _ string) bool { return strings.HasPrefix(ref, folder) })
	return refs, err
}

func (g Runner) listRefs(ctx context.Context, names ...string) (map[string]string, error) {
	out, err := g.Output(ctx, append([]string{"for-each-ref", "--format=%(refname) %(objectname)", "--"}, names...)...)
	if err != nil {
		return nil, err
	}
	refs := map[string]string{}
	for line := range strings.Lines(out) {
		name, sha, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		refs[name] = sha
	}
	return refs, nil
}

// RefTime returns the latest time at which a ref can have moved: that of its own file, or of packed-refs. It returns zero
// if there is neither.
func (g Runner) RefTime(ref string) time.Time {
	for _, name := range []string{filepath.FromSlash(ref), "packed-refs"} {
		if info, err := os.Lstat(filepath.Join(g.common, name)); err == nil {
			return info.ModTime()
		}
	}
	return time.Time{}
}

// Head returns the full name of the branch that HEAD of a git directory points to. If HEAD is detached, the error is an
// [*Error] with exit status 1.
func (g Runner) Head(ctx context.Context, gitDir string) (string, error) {
	if ref, ok := (refFiles{common: g.common}).readHead(gitDir); ok && ctx.Err() == nil {
		return ref, nil
	}
	return g.With("GIT_DIR="+gitDir).Output(ctx, "symbolic-ref", "--quiet", "HEAD")
}

// WithOwnedRefs sets the prefixes, such as "refs/x/", of refs that only this program moves. A lock file of such a ref that was left
// by a killed git is removed by MoveRefs. It is one if it is old, and if no process that shares the file at moving is moving refs.
// sleep may be nil. Pin comes before.
func (g Runner) WithOwnedRefs(moving string, sleep func(context.Context, time.Duration) error, prefixes ...string) Runner {
	if sleep == nil {
		sleep = retry.Sleep
	}
	g.ownedRefs = reflock.Owned{Common: g.common, Prefixes: prefixes, Moving: moving, Sleep: sleep}
	return g
}

// StaleLocks lists the lock files on the owned refs, and on packed-refs, that are likely to be from a killed git.
func (g Runner) StaleLocks() ([]string, error) { return g.ownedRefs.Stale() }

// FreeLock removes a lock file of an owned ref or of packed-refs if it is from a killed git. It waits until it knows, or until the file has gone.
func (g Runner) FreeLock(ctx context.Context, path string) error { return g.ownedRefs.Free(ctx, path) }

// MoveRefs applies all edits or none. It fails with [ErrMoved] if a ref is not at its edit's Old, with [*BlockedError], and
// with [ErrLocked].
func (g Runner) MoveRefs(ctx context.Context, edits ...Edit) error {
	if len(edits) == 0 {
		return nil
	}
	names := make([]string, len(edits))
	for i, e := range edits {
		names[i] = e.Ref
	}
	end, err := g.ownedRefs.BeginMove(ctx, names, slices.ContainsFunc(edits, func(e Edit) bool { return !e.Any && e.New == "" }))
	if err != nil {
		return err
	}
	defer end()
	var in strings.Builder
	for _, e := range edits {
		switch {
		case e.Any:
			fmt.Fprintf(&in, "update %s\x00%s\x00\x00", e.Ref, e.New)
		case e.New == "":
			fmt.Fprintf(&in, "delete %s\x00%s\x00", e.Ref, e.Old)
		case e.Old == "":
			fmt.Fprintf(&in, "create %s\x00%s\x00", e.Ref, e.New)
		default:
			fmt.Fprintf(&in, "update %s\x00%s\x00%s\x00", e.Ref, e.New, e.Old)
		}
	}
	err = g.transact(ctx, in.String())
	if err == nil || ctx.Err() != nil {
		return err
	}
	if moved := g.findMoved(ctx, edits, names); moved != nil {
		return moved
	}
	return cmp.Or(findBlocking(err, "", edits, nil), fmt.Errorf("move refs: %w", err))
}

// transact runs commands in the format of git update-ref --stdin.
func (g Runner) transact(ctx context.Context, commands string) error {
	read := func(r *bufio.Reader) error {
		for _, want := range []string{"start: ok\n", "commit: ok\n"} {
			if answer, err := r.ReadString('\n'); err != nil {
				return err
			} else if answer != want {
				return fmt.Errorf("unexpected answer %q", Printable(answer))
			}
		}
		return nil
	}
	return g.Ask(ctx, "start\x00"+commands+"commit\x00", read, "update-ref", "--no-deref", "-m", "ralph", "--stdin", "-z")
}

// findMoved returns ErrMoved if one of the refs is not at its edit's Old.
func (g Runner) findMoved(ctx context.Context, edits []Edit, names []string) error {
	now, err := g.Refs(ctx, names...)
	if err != nil {
		return nil //nolint:nilerr // the caller reports the transaction's own error
	}
	for _, e := range edits {
		if !e.Any && now[e.Ref] != e.Old {
			return fmt.Errorf("%w: %s is at %s, expected %s", ErrMoved, e.Ref, OrNothing(now[e.Ref]), OrNothing(e.Old))
		}
	}
	return nil
}
