package sbx

import (
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
	gitDir               string // the private repository, or empty
	env                  []string
	user                 user
	root                 []string // the flags by which "sbx exec" runs as root
	pids                 int      // the most processes and threads of the user
	privileged           bool     // root inside has more rights than the user could have

	commands sandboxes.Commands

	mu      sync.Mutex
	refused []sandboxes.Refusal // guarded by mu; the connections that the policy refused
	unread  error               // guarded by mu; why they are not known
	changed bool                // guarded by mu; the .git file had to be put back
}

func (b *box) Workdir() string { return b.workdir }

// Close removes the microVM, with everything that runs in it.
func (b *box) Close(ctx context.Context) error {
	first, err := b.commands.Close(ctx, func(ctx context.Context) error {
		b.readLog(ctx)
		return b.remove(ctx)
	})
	if first && err == nil {
		err = b.restored()
	}
	if err != nil {
		return fmt.Errorf("close sandbox sbx: %w", err)
	}
	return nil
}

// restored is an error if root inside has changed the worktree's .git file.
func (b *box) restored() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed {
		return errors.New("the worktree's .git file was changed inside; it was put back")
	}
	return nil
}

// remove ends the microVM, puts the .git file back, and removes the microVM's files.
func (b *box) remove(ctx context.Context) error {
	if err := b.provider.end(ctx, b.name, b.provider.config.Keep); err != nil {
		return err
	}
	changed, err := sandboxes.RestoreGitFile(b.state)
	b.mu.Lock()
	b.changed = b.changed || changed
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return os.RemoveAll(b.state)
}
