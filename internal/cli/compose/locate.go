package compose

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/scaffold"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
)

// locate finds the repository of the command.
func (a *App) locate(ctx context.Context) (worktree.Location, error) {
	place, err := worktree.Locate(ctx, a.Dir())
	if err == nil {
		return place, hidden(ctx, place)
	}
	hint := ""
	if a.Repo == "" && errors.Is(err, git.ErrNoRepository) {
		hint = "or name the repository's folder: --repo FOLDER"
	}
	return place, &exit.Error{Status: exit.Usage, Err: err, Hint: hint}
}

var errLeftOut = errors.New("not in this sparse checkout")

// hidden refuses a sparse checkout that leaves out ralph's files: without them the gate would not run.
func hidden(ctx context.Context, at worktree.Location) error {
	if _, err := os.Lstat(filepath.Join(at.Top, config.File)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(at.GitDir, "info", "sparse-checkout")); errors.Is(err, fs.ErrNotExist) {
		return nil // not a sparse checkout
	}
	var file string
	err := git.New(at.Top).Lines(ctx, func(line []byte) {
		if name, out := bytes.CutPrefix(line, []byte("S ")); out && file == "" {
			file = string(name)
		}
	}, "ls-files", "-t", "--", scaffold.Dir)
	if err != nil || file == "" {
		return err
	}
	return exit.Usagef("%s is in the repository, but %w; add it with: git sparse-checkout add %s",
		screen.CleanLine(file), errLeftOut, scaffold.Dir)
}

// Top returns the top folder of the command's checkout.
func (a *App) Top(ctx context.Context) (string, error) {
	place, err := a.locate(ctx)
	return place.Top, err
}
