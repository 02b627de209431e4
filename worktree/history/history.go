// Package history keeps the histories of base commits for private repositories. Its caller is package worktree. The store of
// a commit is an object folder with the history of that commit and nothing else; it is never changed once it has its name,
// and all private repositories of the base borrow from it. It is safe for concurrent use, across processes.
package history

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/filelock"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Stores are the stores of one repository.
type Stores struct {
	Dir    string // the folder of all stores
	Temp   string // a folder on the same file system
	Lock   string // a file
	Common string // the repository's git directory
	Git    git.Runner
	Used   func() (map[string]bool, error) // the commits whose stores must stay
}

// Of is the store of a commit.
func (r Stores) Of(commit string) string { return filepath.Join(r.Dir, commit) }

// packsLimit is how many packs a store may have before it is packed anew.
const packsLimit = 20

// Make makes the store of a commit, from an older store if it can. partial: the repository is a partial clone.
func (r Stores) Make(ctx context.Context, commit string, partial bool) error {
	dir := r.Of(commit)
	if _, err := os.Lstat(dir); err == nil {
		return nil
	}
	unlock, err := filelock.Lock(ctx, r.Lock)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Lstat(dir); err == nil {
		return nil
	}
	if err := r.make(ctx, commit, partial); err != nil {
		return fmt.Errorf("pack the history of %s: %w", git.Short(commit), err)
	}
	return r.prune()
}

func (r Stores) make(ctx context.Context, commit string, partial bool) (err error) {
	temp := filepath.Join(r.Temp, "history-"+rand.Text())
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := errors.Join(os.MkdirAll(r.Dir, 0o700), makeFolder(temp)); err != nil {
		return err
	}
	old, err := r.older(ctx, commit)
	if err != nil {
		return err
	}
	if old != "" {
		if err := linkPacks(r.Of(old), temp); err != nil {
			return err
		}
	}
	if err := r.Pack(ctx, temp, commit, old, partial); err != nil {
		return err
	}
	if shallow, err := git.ReadLinked(filepath.Join(r.Common, "shallow")); err == nil {
		if err := os.WriteFile(filepath.Join(temp, "info", "ralph-shallow"), shallow, 0o600); err != nil {
			return err
		}
	}
	return os.Rename(temp, r.Of(commit))
}

// older finds a store whose commit is an ancestor; empty when there is none.
func (r Stores) older(ctx context.Context, commit string) (string, error) {
	stores := r.list()
	for _, s := range stores[:min(len(stores), 3)] {
		old := s.Name()
		packs, err := os.ReadDir(filepath.Join(r.Of(old), "pack"))
		if err != nil || len(packs) > 2*packsLimit {
			continue
		}
		switch inside, err := r.Git.Contains(ctx, commit, old); {
		case err != nil && !git.Failed(err): // the commit may be gone
			return "", err
		case inside:
			return old, nil
		}
	}
	return "", nil
}

// list lists the stores, the newest first.
func (r Stores) list() []fs.FileInfo { return disk.Newest(r.Dir, git.IsObject) }

// prune deletes the stores that are not used, except the newest two.
func (r Stores) prune() error {
	used, err := r.Used()
	if err != nil {
		return nil //nolint:nilerr // then all of them stay
	}
	stores := r.list()
	for _, s := range stores[min(len(stores), 2):] {
		if !used[s.Name()] {
			if err := os.RemoveAll(r.Of(s.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Give makes an object folder with what the commits have and base, which has a store, lacks. It is whole once it has its name.
func (r Stores) Give(ctx context.Context, objects, base string, partial bool, commits ...string) (err error) {
	temp := filepath.Join(r.Temp, "given-"+rand.Text())
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := errors.Join(os.MkdirAll(filepath.Dir(objects), 0o700), makeFolder(temp)); err != nil {
		return err
	}
	for _, commit := range commits {
		if commit == base {
			continue
		}
		if err := r.Pack(ctx, temp, commit, base, partial); err != nil {
			return err
		}
	}
	return os.Rename(temp, objects)
}

// makeFolder makes an empty object folder.
func makeFolder(dir string) error {
	return errors.Join(os.MkdirAll(filepath.Join(dir, "info"), 0o700), os.MkdirAll(filepath.Join(dir, "pack"), 0o700))
}

// Pack packs what commit has and without lacks into an object folder.
func (r Stores) Pack(ctx context.Context, objects, commit, without string, partial bool) error {
	in := commit + "\n"
	if without != "" {
		in += "^" + without + "\n"
	}
	args := []string{"pack-objects", "--revs", "--quiet", "--non-empty", "--delta-base-offset", "--window=5"}
	if partial {
		args = append(args, "--missing=allow-promisor")
	}
	// git makes the pack in its own object folder first, which may be on another file system.
	g := r.Git.Borrowing(filepath.Join(r.Common, "objects")).With("GIT_OBJECT_DIRECTORY=" + objects)
	_, err := g.Run(ctx, in, append(args, filepath.Join(objects, "pack", "pack"))...)
	return err
}

// linkPacks shows the packs of one object folder in another.
func linkPacks(from, to string) error {
	entries, err := os.ReadDir(filepath.Join(from, "pack"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Link(filepath.Join(from, "pack", e.Name()), filepath.Join(to, "pack", e.Name())); err != nil {
			return err
		}
	}
	return nil
}
