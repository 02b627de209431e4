package traces

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/leftover"
)

// DropBroken removes broken refs, so that their key can be worked; nobody may be working it now. A name with a slash at the
// end stands for all refs below it. dropped says whether it removed any.
func (s Scope) DropBroken(ctx context.Context, log *slog.Logger, refs ...string) (dropped bool, err error) {
	all, err := s.brokenRefs(ctx, refs...)
	if err != nil && ctx.Err() != nil {
		return false, err // any other error is about the user's own refs
	}
	for _, l := range append(all, s.garbledRefs(refs...)...) {
		if _, err := l.Remove(ctx); err != nil {
			return dropped, fmt.Errorf("remove the broken ref %s: %w", l.Where, err)
		}
		log.Warn("broken ref removed", "ref", l.Where, "why", l.Detail)
		dropped = true
	}
	return dropped, nil
}

// brokenRefs lists those of the refs that point to no commit, or to a commit with missing objects. Git fails at such a ref,
// also for the user.
func (s Scope) brokenRefs(ctx context.Context, names ...string) ([]leftover.Leftover, error) {
	refs, err := s.Git.Refs(ctx, names...)
	if err != nil || len(refs) == 0 {
		return nil, err
	}
	commits, err := s.Git.Objects(ctx, "commit", slices.Compact(slices.Sorted(maps.Values(refs))))
	if err != nil {
		return nil, err
	}
	var all []leftover.Leftover
	var present []string
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		if at := refs[ref]; commits[at] == "" {
			all = append(all, s.brokenRef(ref, at, "its commit "+at+" is missing"))
		} else {
			present = append(present, ref)
		}
	}
	if len(present) == 0 || s.checkConnected(ctx, refs, present...) == nil {
		return all, ctx.Err()
	}
	if err := s.checkConnected(ctx, refs); err != nil {
		return all, fmt.Errorf("git cannot read refs of your own, so ralph's refs cannot be checked: %w", err)
	}
	for _, ref := range present {
		if err := s.checkConnected(ctx, refs, ref); git.Failed(err) {
			all = append(all, s.brokenRef(ref, refs[ref], "objects of its commit "+refs[ref]+" are missing"))
		}
	}
	return all, ctx.Err()
}

// checkConnected fails unless all objects of the refs exist. It skips objects of the user's own refs.
func (s Scope) checkConnected(ctx context.Context, at map[string]string, refs ...string) error {
	var in strings.Builder
	for _, ref := range refs {
		in.WriteString(at[ref] + "\n")
	}
	args := []string{"rev-list", "--objects", "--quiet", "--exclude-promisor-objects", "--stdin", "--not"}
	for _, prefix := range s.Refs {
		args = append(args, "--exclude="+prefix+"*")
	}
	_, err := s.Git.Run(ctx, in.String(), append(args, "--glob=refs/*")...)
	return err
}

// garbledRefs lists ref files without a valid object name, for example empty ones after a power loss. A name that ends in a slash means
// all refs below it.
func (s Scope) garbledRefs(names ...string) (all []leftover.Leftover) {
	for _, name := range names {
		_ = filepath.WalkDir(filepath.Join(s.Common, filepath.FromSlash(name)), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err == nil && d.IsDir() && !strings.HasSuffix(name, "/"):
				return fs.SkipDir
			case err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".lock"):
				return nil //nolint:nilerr // what is not there is not garbled
			}
			content, _, err := git.ReadRegular(path)
			if text := strings.TrimSpace(string(content)); err == nil && !git.IsObject(text) && !strings.HasPrefix(text, "ref: ") {
				ref, err := filepath.Rel(s.Common, path)
				if err != nil {
					return err
				}
				all = append(all, leftover.Leftover{
					Kind:   leftover.Ref,
					Where:  path,
					Detail: "it does not contain the name of a commit",
					Key:    s.keyOf(filepath.ToSlash(ref)),
					Safe:   s.isOld(path),
					Remove: removeFunc(path),
				})
			}
			return nil
		})
	}
	return all
}

func (s Scope) brokenRef(ref, at, why string) leftover.Leftover {
	return leftover.Leftover{Kind: leftover.Ref, Where: ref, Detail: why, Key: s.keyOf(ref), Remove: func(ctx context.Context) (string, error) {
		err := s.Git.MoveRefs(ctx, git.Edit{Ref: ref, Old: at})
		if path := filepath.Join(s.Common, filepath.FromSlash(ref)); git.Failed(err) && !errors.Is(err, git.ErrMoved) {
			err = os.Remove(path) // an older git reads the commit first, and fails
		}
		return fmt.Sprintf("it was at %s", at), err
	}}
}

// keyOf returns the key in a ref's name: the part after a branch's prefix, or after another ref's kind.
func (s Scope) keyOf(ref string) string {
	for _, prefix := range s.Refs {
		if rest, ok := strings.CutPrefix(ref, prefix); ok {
			parts := strings.Split(rest, "/")
			return parts[min(len(parts)-1, 1)]
		}
	}
	return ""
}
