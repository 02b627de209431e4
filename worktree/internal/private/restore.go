package private

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Restore makes a deleted repository again. It does not change the checkout. The next import makes the missing index. The
// exception is a sparse checkout, where only git's own checkout marks the files that are left out: for it, g makes the
// index in temp.
func (f Files) Restore(ctx context.Context, g git.Runner, temp, dir string) error {
	err := disk.RemoveAll(temp)
	if err == nil {
		err = f.Write(temp)
	}
	if err == nil && f.Config.Get("core.sparsecheckout") == "true" {
		files := filepath.Join(temp, "files")
		if err = os.Mkdir(files, 0o700); err == nil {
			err = g.Pin(f.From.GitDir, f.From.Common, files).CheckOut(ctx, f.Config, filepath.Join(temp, "index"), "", f.Commit)
		}
		err = errors.Join(err, disk.RemoveAll(files))
	}
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(dir), 0o700), os.Rename(temp, dir))
	}
	return errors.Join(err, disk.RemoveAll(temp))
}
