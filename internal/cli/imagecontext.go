package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/tempdir"
	"github.com/ralph-pool/ralph/worktree/filecopy"
	"github.com/ralph-pool/ralph/worktree/git"
)

// buildContext copies what an image may be built from: the files of the folder without secrets, which git ignores, and
// without git's own folder. remove deletes the copy.
func buildContext(ctx context.Context, dir string) (copied string, remove func(), err error) {
	paths, err := contextFiles(ctx, dir)
	if err != nil {
		return "", nil, fmt.Errorf("files for the image: %w", err)
	}
	copied, drop, err := tempdir.Held("ralph-image-")
	if err != nil {
		return "", nil, fmt.Errorf("files for the image: %w", err)
	}
	remove = func() { _ = drop() }
	if err := filecopy.Copy(ctx, dir, copied, paths, nil, filecopy.AnyLink); err != nil {
		remove()
		return "", nil, fmt.Errorf("files for the image: %w", err)
	}
	return copied, remove, nil
}

// contextFiles lists the files and links.
func contextFiles(ctx context.Context, dir string) (paths []string, err error) {
	all, err := git.New(dir).Unignored(ctx)
	if err != nil {
		if all, err = walk(dir); err != nil { // no repository
			return nil, err
		}
	}
	for _, path := range all {
		info, err := os.Lstat(filepath.Join(dir, path))
		isFile := err == nil && (info.Mode().IsRegular() || info.Mode()&fs.ModeSymlink != 0)
		if isFile && filepath.Base(path) != ".env" {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// walk lists everything but git directories.
func walk(dir string) (paths []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		rel, relErr := filepath.Rel(dir, path)
		if relErr == nil {
			paths = append(paths, rel)
		}
		return err
	})
	return paths, err
}
