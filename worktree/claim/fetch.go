package claim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/worktree/git"
)

const (
	fetchMost = 64 << 20               // bytes that one fetch of claims may write; a claim takes some hundred
	fetchLook = 200 * time.Millisecond // between looks at what it has written
	fewClaims = 20                     // at most these are written one by one
)

var errRoom = errors.New("the claims are too large to be fetched")

// fetch adds claims of the remote to known, and keeps them here. Whoever may push to the remote can hang files of any size on a claim:
// what is fetched stays apart until it is read, and of that only what a claim is made of is kept.
func (c remoteRefs) fetch(ctx context.Context, known map[string]string, room *int64, commits ...string) error {
	dir, err := os.MkdirTemp(c.objects.Dir, "tmp_objdir-claims-") // git gc removes what begins like this
	if err != nil {
		return fmt.Errorf("fetch claims: %w", err)
	}
	defer os.RemoveAll(dir)
	apart := c
	apart.git = c.git.With("GIT_OBJECT_DIRECTORY="+dir, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+alternate(c.objects.Dir),
		"GIT_CONFIG_PARAMETERS='fetch.unpackLimit=1' 'fetch.bundleURI='") // a pack is written as it comes; refs would keep bundles
	err = apart.fetchWithin(ctx, dir, commits)
	if errors.Is(err, errRoom) && len(commits) == 1 {
		known[commits[0]] = "\n\n" + tooLarge
		c.unkept.Store(commits[0], known[commits[0]])
	}
	if err != nil {
		return err
	}
	found, err := apart.here(ctx, commits, room)
	if err != nil {
		return err
	}
	maps.Copy(known, found)
	maps.DeleteFunc(found, func(name, object string) bool {
		tree, rest, _ := strings.Cut(strings.TrimPrefix(object, "tree "), "\n")
		if git.IsEmptyTree(tree) && strings.HasPrefix(rest, "author ") {
			return false
		}
		if len(object) > large { // none of ralph's is, and many would fill the memory
			known[name] = "\n\n" + tooLarge
		}
		c.unkept.Store(name, known[name])
		return true
	})
	return c.keep(ctx, dir, found)
}

// keep adds claims to the repository's objects: few as files of their own, which takes no process.
func (c remoteRefs) keep(ctx context.Context, dir string, claims map[string]string) error {
	if len(claims) > fewClaims {
		names := strings.Join(slices.Collect(maps.Keys(claims)), "\n") + "\n"
		_, err := c.git.With("GIT_ALTERNATE_OBJECT_DIRECTORIES="+alternate(dir)).
			Run(ctx, names, "pack-objects", "--quiet", "--window=0", filepath.Join(c.objects.Dir, "pack", "pack"))
		return err
	}
	for _, object := range claims {
		if _, err := c.objects.Write("commit", []byte(object)); err != nil {
			return err
		}
	}
	return nil
}

// fetchWithin fetches into a folder, and gives up when that gets too large.
func (c remoteRefs) fetchWithin(ctx context.Context, dir string, commits []string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	looks := make(chan struct{})
	go func() {
		defer close(looks)
		look := time.NewTicker(fetchLook)
		defer look.Stop()
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-look.C:
				c.measure(ctx, dir, cancel)
			}
		}
	}()
	err := c.git.Fetch(ctx, c.remote, commits...)
	c.measure(ctx, dir, cancel)
	over := context.Cause(ctx)
	cancel(nil)
	<-looks
	return errors.Join(err, over)
}

func (c remoteRefs) measure(ctx context.Context, dir string, cancel context.CancelCauseFunc) {
	if disk.Measure(ctx, dir, dir).Bytes > c.most {
		cancel(errRoom)
	}
}

// alternate is a folder as git wants it in a list of them.
func alternate(dir string) string {
	if strings.ContainsAny(dir, `:"`+"\n") {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(filepath.Clean(dir)) + `"`
	}
	return dir
}
