package claim

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/internal/incoming"
)

const (
	maxFetchBytes  = 64 << 20 // limit of one fetch of claims, in bytes; a claim takes a few hundred
	maxLooseClaims = 20       // up to this number, claims are written one by one
)

// fetch fetches claims of the remote, adds them to known and stores them here. Anybody with push access can attach files of
// any size to a claim. So the fetched objects stay in a separate folder, and only the commits of claims are kept.
func (c remoteRefs) fetch(ctx context.Context, known map[string]string, bytesLeft *int64, commits ...string) error {
	dir, remove, err := incoming.Folder(ctx, c.objects.Dir)
	if err != nil {
		return err
	}
	defer remove()
	incomingRefs := c
	incomingRefs.git = incoming.WithObjectFolder(c.git, c.objects.Dir, dir)
	err = incoming.FetchInto(ctx, incomingRefs.git, dir, c.remote, c.maxFetch, commits...)
	if errors.Is(err, incoming.ErrSize) && len(commits) == 1 {
		known[commits[0]] = "\n\n" + tooLarge
		c.notStored.Store(commits[0], known[commits[0]])
	}
	if err != nil {
		return err
	}
	found, err := incomingRefs.readLocal(ctx, commits, bytesLeft)
	if err != nil {
		return err
	}
	maps.Copy(known, found)
	maps.DeleteFunc(found, func(name, object string) bool {
		tree, rest, _ := strings.Cut(strings.TrimPrefix(object, "tree "), "\n")
		if git.IsEmptyTree(tree) && strings.HasPrefix(rest, "author ") {
			return false
		}
		if len(object) > largeBytes { // ralph's claims are never this large, and many of them would fill the memory
			known[name] = "\n\n" + tooLarge
		}
		c.notStored.Store(name, known[name])
		return true
	})
	return c.storeClaims(ctx, dir, found)
}

// storeClaims adds claims to the repository's objects. It writes a few as loose objects, which needs no process.
func (c remoteRefs) storeClaims(ctx context.Context, dir string, claims map[string]string) error {
	if len(claims) > maxLooseClaims {
		names := strings.Join(slices.Collect(maps.Keys(claims)), "\n") + "\n"
		_, err := c.git.WithAlternate(dir).Run(ctx, names, "pack-objects", "--quiet", "--window=0", filepath.Join(c.objects.Dir, "pack", "pack"))
		return err
	}
	for _, object := range claims {
		if _, err := c.objects.Write("commit", []byte(object)); err != nil {
			return err
		}
	}
	return nil
}
