package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/mirror"
)

// copies are the folders that the host and a container keep the same, where nothing can be mounted: what the host has
// changed goes in before a command, what the command has changed comes out after it.
type copies struct {
	box     *box
	folders []*folder

	sync sync.Mutex // held by the one that sends or takes

	mu    sync.Mutex
	busy  int         // guarded by mu; commands that run
	ended int         // guarded by mu; commands that have run
	taken int         // guarded by mu; of them, those whose files have come out
	open  bool        // guarded by mu; others may run commands, and do not tell
	left  mirror.Left // guarded by mu; what was not taken the last time
}

// errRefused is a list of files that is not even looked at.
var errRefused = errors.New("the sandbox's files are refused")

// folder is one of them.
type folder struct {
	mirror.Tree
	role   string // roleTree, roleGit or roleOwn
	inside string
}

// How long files may be under way: at most, and when the caller waits for no result any more.
const (
	copyLimit   = 30 * time.Minute
	hurriedCopy = time.Minute
)

// newCopies opens the host's folders. A git folder that is empty ("") is none.
func newCopies(b *box, worktree, gitDir string, own []sandboxes.Mount) (*copies, error) {
	c := &copies{box: b}
	var all []place
	if gitDir != "" {
		all = append(all, place{roleGit, gitDir, insideFolder(worktree, roleGit)})
	}
	all = append(all, place{roleTree, worktree, insideFolder(worktree, roleTree)})
	for _, m := range own {
		all = append(all, place{roleOwn, m.Host, m.Inside})
	}
	for _, f := range all {
		root, err := os.OpenRoot(f.host)
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		c.folders = append(c.folders, &folder{
			Tree: mirror.Tree{Root: root, Skip: skipOf(f.role), Links: f.role == roleTree, Limits: b.provider.copyLimits},
			role: f.role, inside: f.inside,
		})
	}
	return c, nil
}

func (c *copies) close() error {
	var errs []error
	for _, f := range c.folders {
		errs = append(errs, f.Root.Close())
	}
	return errors.Join(errs...)
}

// around runs a command between sending and taking.
func (c *copies) around(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if err := c.send(ctx); err != nil {
		switch {
		case ctx.Err() != nil:
			return sandboxes.Exit{}, context.Cause(ctx)
		case c.box.isClosed():
			return sandboxes.Exit{}, sandboxes.ErrClosed
		}
		return sandboxes.Exit{}, fmt.Errorf("bring files into the %s sandbox: %w", c.box.provider.engine.Name, err)
	}
	c.mu.Lock()
	c.busy++
	c.mu.Unlock()
	exit, err := c.box.exec(ctx, cmd, false)
	c.mu.Lock()
	c.busy--
	c.ended++
	mine := c.ended
	c.mu.Unlock()
	switch {
	case c.box.isClosed():
		return exit, err // Close takes
	case c.box.isBroken():
		// Whoever hands back next is to find what the command has left; Close tries again where that fails.
		hurry, cancel := context.WithTimeout(context.WithoutCancel(ctx), hurriedCopy)
		defer cancel()
		_ = c.last(hurry)
		return exit, err
	}
	if takeErr := c.take(ctx, mine); takeErr != nil && err == nil {
		if c.box.isClosed() {
			return sandboxes.Exit{}, sandboxes.ErrClosed
		}
		return sandboxes.Exit{}, takeErr
	}
	return exit, err
}

// send brings in what the host has changed.
func (c *copies) send(ctx context.Context) error {
	c.sync.Lock()
	defer c.sync.Unlock()
	for _, f := range c.folders {
		changed, gone, err := f.Changed()
		if err != nil {
			return err
		}
		if err := c.sendTo(ctx, f, changed, gone); err != nil {
			return err
		}
	}
	return nil
}

func (c *copies) sendTo(ctx context.Context, f *folder, changed []mirror.Entry, gone []string) error {
	if len(gone) > 0 {
		if err := c.put(ctx, joined(gone), insideRemove, f.inside); err != nil {
			return err
		}
	}
	var inside []mirror.Entry
	if len(changed) > 0 {
		stream := pipeFrom(func(w *pipeEnd) error { return mirror.Pack(w, f.Root, changed) })
		err := errors.Join(c.put(ctx, stream, insideUnpack, f.inside), stream.end())
		if err != nil {
			return err
		}
		if c.quiet() {
			if inside, err = c.list(ctx, f); err != nil {
				return err
			}
			if !c.quiet() {
				inside = nil
			}
		}
	}
	f.Sent(changed, gone, inside)
	return nil
}

// quiet reports that no command runs that could change files.
func (c *copies) quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy == 0 && !c.open
}

// enter notes that commands may run of which nobody tells.
func (c *copies) enter() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = true
}

// take brings out what has changed inside, unless somebody has done so since the command that is number mine ended.
func (c *copies) take(ctx context.Context, mine int) error {
	limit := copyLimit
	if ctx.Err() != nil {
		limit = hurriedCopy
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), limit, fmt.Errorf("it takes longer than %s", limit))
	defer cancel()
	c.sync.Lock()
	defer c.sync.Unlock()
	c.mu.Lock()
	now, done := c.ended, c.taken >= mine
	c.mu.Unlock()
	if done {
		return nil
	}
	var left mirror.Left
	for _, f := range c.folders {
		some, err := c.takeFrom(ctx, f)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return fmt.Errorf("bring files out of the %s sandbox: %w", c.box.provider.engine.Name, err)
		}
		left = left.And(some)
	}
	c.mu.Lock()
	c.taken, c.left = now, left
	c.mu.Unlock()
	return nil
}

func (c *copies) takeFrom(ctx context.Context, f *folder) (mirror.Left, error) {
	listed, err := c.list(ctx, f)
	if err != nil {
		return mirror.Left{}, err // nothing is taken, so that what is missing does not look removed
	}
	return f.Apply(ctx, listed, c.fetch(ctx, f))
}

// last brings out what is left, when no command runs any more.
func (c *copies) last(ctx context.Context) error {
	c.mu.Lock()
	if c.open {
		c.ended++
	}
	mine, done := c.ended, c.taken == c.ended
	c.mu.Unlock()
	if done {
		return nil
	}
	p := c.box.provider
	err := c.box.revive(ctx)
	if err != nil {
		err = fmt.Errorf("bring files out of the %s sandbox: %w", p.engine.Name, err)
	} else {
		err = c.take(ctx, mine)
	}
	if err != nil {
		if there, listErr := p.exists(ctx, c.box.name); listErr == nil && !there {
			return nil // somebody else has ended it, and taken what there was
		}
	}
	return err
}

// Left says what of the sandbox's files was not taken the last time; empty when all was.
func (b *box) Left() string {
	if b.copies == nil {
		return ""
	}
	b.copies.mu.Lock()
	defer b.copies.mu.Unlock()
	if err := b.copies.left.Err(); err != nil {
		return err.Error()
	}
	return ""
}
