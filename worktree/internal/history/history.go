// Package history keeps stores of objects that the private repositories of runs borrow from. Its caller is package
// worktree. Each store is an object folder with the history of one base commit and nothing else. It never changes once it
// has its final name. The package is safe for concurrent use, across processes.
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

// Stores describes the stores of one repository.
type Stores struct {
	Dir    string // folder of all stores
	Temp   string // folder on the same file system
	Lock   string // path of the lock file
	Common string // the repository's common git directory
	Git    git.Runner
	Used   func() (map[string]bool, error) // returns the commits whose stores must stay
}

// Path returns the path of a commit's store.
func (r Stores) Path(commit string) string { return filepath.Join(r.Dir, commit) }

// packsLimit is the number of packs above which a store is repacked.
const packsLimit = 20

// Make makes the store of a commit, if possible on top of an older store. partial says that the repository is a partial
// clone.
func (r Stores) Make(ctx context.Context, commit string, partial bool) error {
	dir := r.Path(commit)
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
	if err := r.makeStore(ctx, commit, partial); err != nil {
		return fmt.Errorf("pack the history of %s: %w", git.Short(commit), err)
	}
	return r.prune()
}

func (r Stores) makeStore(ctx context.Context, commit string, partial bool) (err error) {
	temp := filepath.Join(r.Temp, "history-"+rand.Text())
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := errors.Join(os.MkdirAll(r.Dir, 0o700), makeFolder(temp)); err != nil {
		return err
	}
	ancestor, err := r.findAncestor(ctx, commit)
	if err != nil {
		return err
	}
	if ancestor != "" {
		if err := linkPacks(r.Path(ancestor), temp); err != nil {
			return err
		}
	}
	if err := r.Pack(ctx, temp, commit, ancestor, partial); err != nil {
		return err
	}
	if shallow, err := git.ReadLinked(filepath.Join(r.Common, "shallow")); err == nil {
		if err := os.WriteFile(filepath.Join(temp, "info", "ralph-shallow"), shallow, 0o600); err != nil {
			return err
		}
	}
	return os.Rename(temp, r.Path(commit))
}

// findAncestor returns a store's commit that is an ancestor of commit, or "".
func (r Stores) findAncestor(ctx context.Context, commit string) (string, error) {
	stores := r.list()
	for _, s := range stores[:min(len(stores), 3)] {
		old := s.Name()
		packs, err := os.ReadDir(filepath.Join(r.Path(old), "pack"))
		if err != nil || len(packs) > 2*packsLimit {
			continue
		}
		switch inside, err := r.Git.Contains(ctx, commit, old); {
		case err != nil && !git.Failed(err): // if git failed, the old commit may be gone
			return "", err
		case inside:
			return old, nil
		}
	}
	return "", nil
}

// list lists the stores, newest first.
func (r Stores) list() []fs.FileInfo { return disk.Newest(r.Dir, git.IsObject) }

// prune deletes unused stores, except the newest two.
func (r Stores) prune() error {
	used, err := r.Used()
	if err != nil {
		return nil //nolint:nilerr // then all of them stay
	}
	stores := r.list()
	for _, s := range stores[min(len(stores), 2):] {
		if !used[s.Name()] {
			if err := os.RemoveAll(r.Path(s.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Give makes an object folder with the objects that the commits have and base lacks; base has a store. The folder is
// complete once it has its final name.
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

// Pack packs the objects that commit has and without lacks into an object folder.
func (r Stores) Pack(ctx context.Context, objects, commit, without string, partial bool) error {
	in := commit + "\n"
	if without != "" {
		in += "^" + without + "\n"
	}
	args := []string{"pack-objects", "--revs", "--quiet", "--non-empty", "--delta-base-offset", "--window=5"}
	if partial {
		args = append(args, "--missing=allow-promisor")
	}
	// git writes the pack to its own object folder first, which may be on another file system; so that folder is set to
	// objects.
	g := r.Git.WithAlternate(filepath.Join(r.Common, "objects")).With("GIT_OBJECT_DIRECTORY=" + objects)
	_, err := g.Run(ctx, in, append(args, filepath.Join(objects, "pack", "pack"))...)
	return err
}

// linkPacks makes hard links to the packs of one object folder in another.
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
