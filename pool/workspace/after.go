package workspace

import (
	"context"
	"fmt"
	"io"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/worktree/git"
)

// After has the commands for the end of a run. They run in its sandbox when all work has been imported, before the sandbox is
// closed and the worktree removed. Their changes are in no commit.
type After struct {
	Lines   []loop.Command
	Observe func(loop.Event)
	Stream  func(name string) (io.WriteCloser, error)
}

// Run runs each command, even after one has failed, and returns the failures. It does nothing if the sandbox is not open.
func (a After) Run(ctx context.Context, w *Workspace) (failed []error) {
	if w.Sandbox == nil || len(a.Lines) == 0 {
		return nil
	}
	for i, line := range a.Lines {
		checks, err := loop.RunCommands(ctx, loop.Config{
			Sandbox: w.Sandbox, Timers: w.c.Timers,
			Stream:  func(string) (io.WriteCloser, error) { return a.Stream(fmt.Sprintf("after-%d.log", i+1)) },
			Observe: a.Observe,
		}, loop.EventAfter, []loop.Command{line})
		for _, c := range checks {
			if c.Passed() {
				continue
			}
			err = fmt.Errorf("after `%s` %s", c.Command, c.Failure())
			if said := lastLine(c.Tail); said != "" && !c.TimedOut {
				err = fmt.Errorf("%w: %s", err, said)
			}
		}
		if err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err := w.resetBranch(context.WithoutCancel(ctx)); err != nil {
		failed = append(failed, err)
	}
	return failed
}

// resetBranch moves the branch back to the imported tip. In a tree that is linked to the repository a command can move the
// branch, and nothing has checked those commits.
func (w *Workspace) resetBranch(ctx context.Context) error {
	if w.Tree == nil || w.Tree.Spec().Private || w.Last.Tip == "" {
		return nil
	}
	ref := "refs/heads/" + w.Tree.Spec().Branch
	if err := w.Tree.Attach(ctx); err != nil { // a rebase starts from HEAD
		return err
	}
	refs, err := w.c.Repo.Git().Refs(ctx, ref)
	if err != nil || refs[ref] == w.Last.Tip {
		return err
	}
	if err := w.c.Repo.Git().MoveRefs(ctx, git.Edit{Ref: ref, New: w.Last.Tip, Any: true}); err != nil {
		return err
	}
	return fmt.Errorf("after: the commands have moved %s to %q; ralph moved it back to %.12s", w.Tree.Spec().Branch, refs[ref], w.Last.Tip)
}
