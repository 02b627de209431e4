package sbx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/ralph-pool/ralph/sandboxes"
)

// box is the microVM of one run.
type box struct {
	provider             *Provider
	name, state, workdir string
	gitDir               string // the private repository, or ""
	env                  []string
	user                 user
	root                 []string // flags with which "sbx exec" runs as root
	pids                 int      // maximum number of processes and threads of the user
	privileged           bool     // root inside has capabilities that the user could not have

	commands sandboxes.Commands

	mu          sync.Mutex
	refused     []sandboxes.Refusal // guarded by mu; connections that the policy refused
	refusalsErr error               // guarded by mu; the reason why these are unknown
	changed     bool                // guarded by mu; the .git file had to be restored
}

func (b *box) Workdir() string { return b.workdir }

// Close removes the microVM, with everything that runs in it. It reports a .git file that was changed inside.
func (b *box) Close(ctx context.Context) error {
	first, err := b.commands.Close(ctx, func(ctx context.Context) error {
		b.readLog(ctx)
		return b.remove(ctx)
	})
	if first && err == nil {
		err = b.checkGitFile()
	}
	if err != nil {
		return fmt.Errorf("close sandbox sbx: %w", err)
	}
	return nil
}

// checkGitFile returns an error if root inside has changed the worktree's .git file.
func (b *box) checkGitFile() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed {
		return errors.New("the worktree's .git file was changed inside; it was put back")
	}
	return nil
}

// remove ends the microVM, restores the .git file, and removes the microVM's state folder.
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
