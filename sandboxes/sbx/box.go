package sbx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/ralph-pool/ralph/sandboxes"
)

// box is one run's microVM.
type box struct {
	provider             *Provider
	name, state, workdir string
	gitDir               string // the private repository; empty: none
	env                  []string
	user                 user
	root                 []string // what makes "sbx exec" run as root
	pids                 int      // how many processes and threads the user may have
	privileged           bool     // whether root has more rights than it gives by itself
	git                  []byte   // what the worktree's .git file says on the host; nil: there is none of ours

	closing sync.Mutex // held by the one Close that works

	mu      sync.Mutex
	closed  bool                    // guarded by mu; no Exec starts any more
	ended   bool                    // guarded by mu; Close has done its work
	running map[*execution]struct{} // guarded by mu
	refused []sandboxes.Refusal     // guarded by mu; what the policy has let nobody through to
	unread  error                   // guarded by mu; why that is not known
}

// execution is one Exec in progress.
type execution struct {
	stop context.CancelCauseFunc // ends the client
	done chan struct{}
}

func (b *box) Workdir() string { return b.workdir }

// begin registers an Exec.
func (b *box) begin(stop context.CancelCauseFunc) (*execution, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, sandboxes.ErrClosed
	}
	e := &execution{stop: stop, done: make(chan struct{})}
	b.running[e] = struct{}{}
	return e, nil
}

func (b *box) finish(e *execution) {
	b.mu.Lock()
	delete(b.running, e)
	b.mu.Unlock()
	close(e.done)
}

func (b *box) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// Close removes the microVM, with everything that runs in it.
func (b *box) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.closing.Lock()
	defer b.closing.Unlock()
	b.mu.Lock()
	ended := b.ended
	var running []*execution
	for e := range b.running {
		running = append(running, e)
	}
	b.mu.Unlock()
	if ended {
		return nil
	}
	b.readLog(ctx)
	if err := b.remove(ctx); err != nil {
		return fmt.Errorf("close sandbox sbx: %w", err)
	}
	for _, e := range running {
		e.stop(sandboxes.ErrClosed)
		select {
		case <-e.done:
		case <-ctx.Done():
			return fmt.Errorf("close sandbox sbx: %w", context.Cause(ctx))
		}
	}
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	if err := b.restoreGit(); err != nil {
		return fmt.Errorf("close sandbox sbx: %w", err)
	}
	return nil
}

// remove ends the microVM and removes its files.
func (b *box) remove(ctx context.Context) error {
	if err := b.provider.end(ctx, b.name, b.provider.config.Keep); err != nil {
		return err
	}
	return os.RemoveAll(b.state)
}

// restoreGit puts the worktree's .git file back if root inside has taken ralph's away and changed it. It follows no
// link: the folder is the agent's.
func (b *box) restoreGit() error {
	if b.git == nil {
		return nil
	}
	root, err := os.OpenRoot(b.workdir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if info, err := root.Lstat(".git"); err == nil && info.Mode().IsRegular() && info.Size() == int64(len(b.git)) {
		if now, err := root.ReadFile(".git"); err == nil && bytes.Equal(now, b.git) {
			return nil
		}
	}
	changed := errors.New("the worktree's .git file was changed inside; it was put back")
	if err := root.RemoveAll(".git"); err != nil {
		return errors.Join(changed, err)
	}
	if err := root.WriteFile(".git", b.git, 0o644); err != nil {
		return errors.Join(changed, err)
	}
	return changed
}
