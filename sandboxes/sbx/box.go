package sbx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/engine"
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

	commands engine.Commands

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
	changed, err := restoreGit(b.state)
	b.mu.Lock()
	b.changed = b.changed || changed
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return os.RemoveAll(b.state)
}

// Files of the state folder about the worktree's .git file on the host. They are not there if ralph shows none of its own.
const (
	worktreeFile = "worktree" // holds the worktree's path
	gitFile      = "original" // holds what .git holds
)

// keepGit notes what restoreGit puts back. The path comes last: with it the note is complete.
func keepGit(state, worktree string, git []byte) error {
	if err := os.WriteFile(filepath.Join(state, gitFile), git, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(state, worktreeFile), []byte(worktree), 0o600)
}

// restoreGit puts the worktree's .git file back if root inside has removed ralph's and changed it. It follows no link: the
// folder is the agent's.
func restoreGit(state string) (changed bool, err error) {
	worktree, err := os.ReadFile(filepath.Join(state, worktreeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	git, gitErr := os.ReadFile(filepath.Join(state, gitFile))
	if err := errors.Join(err, gitErr); err != nil {
		return false, err
	}
	root, err := os.OpenRoot(string(worktree))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // removed since
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = root.Close() }()
	if info, err := root.Lstat(".git"); err == nil && info.Mode().IsRegular() && info.Size() == int64(len(git)) {
		if now, err := root.ReadFile(".git"); err == nil && bytes.Equal(now, git) {
			return false, nil
		}
	}
	if err := errors.Join(disk.RemoveAll(filepath.Join(string(worktree), ".git")), root.WriteFile(".git", git, 0o644)); err != nil {
		return true, fmt.Errorf("put the worktree's .git file back: %w", err)
	}
	return true, nil
}
