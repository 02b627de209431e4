package worktree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// remoteClaims keeps claims on a remote, which does the compare-and-swap.
type remoteClaims struct {
	git    git // may talk to the remote
	remote string
}

var _ claimStore = remoteClaims{}

func (c remoteClaims) swap(ctx context.Context, key, old, new string) error {
	ref := claimRef(key)
	err := c.git.push(ctx, c.remote, ref, old, new)
	if err == nil {
		return nil
	}
	at, readErr := c.git.remoteRefs(ctx, c.remote, ref)
	if readErr != nil {
		return readErr
	}
	switch at[ref] {
	case new:
		return nil // it did arrive
	case old:
		if !errors.Is(err, errStale) { // else it was somewhere else in between
			return fmt.Errorf("%w: %w", ErrRemote, err)
		}
	}
	return errSwap
}

func (c remoteClaims) read(ctx context.Context, key string) (commit, message string, err error) {
	for range claimTries {
		at, err := c.git.remoteRefs(ctx, c.remote, claimRef(key))
		if err != nil {
			return "", "", err
		}
		commit = at[claimRef(key)]
		if commit == "" {
			return "", "", nil
		}
		messages, err := c.messages(ctx, at)
		if err != nil {
			return "", "", err
		}
		if message, ok := messages[commit]; ok {
			return commit, message, nil
		}
	}
	return "", "", fmt.Errorf("%w: the claim on %s changes faster than it can be read", ErrRemote, key)
}

func (c remoteClaims) list(ctx context.Context) (map[string]string, error) {
	for range claimTries {
		at, err := c.git.remoteRefs(ctx, c.remote, claimPrefix+"*")
		if err != nil {
			return nil, err
		}
		maps.DeleteFunc(at, func(ref, _ string) bool { return !strings.HasPrefix(ref, claimPrefix) })
		known, err := c.messages(ctx, at)
		if err != nil {
			return nil, err
		}
		messages := map[string]string{}
		for ref, commit := range at {
			if message, ok := known[commit]; ok {
				messages[strings.TrimPrefix(ref, claimPrefix)] = message
			}
		}
		if len(messages) == len(at) {
			return messages, nil
		}
	}
	return nil, fmt.Errorf("%w: the claims change faster than they can be read", ErrRemote)
}

// messages reads the claim commits, and fetches those that are not here, all at once. A claim that is gone from the
// remote by then is missing in the answer.
func (c remoteClaims) messages(ctx context.Context, at map[string]string) (map[string]string, error) {
	commits := slices.Compact(slices.Sorted(maps.Values(at)))
	known, err := c.git.readMessages(ctx, commits)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, commit := range commits {
		if _, ok := known[commit]; !ok {
			missing = append(missing, commit)
		}
	}
	if len(missing) == 0 {
		return known, nil
	}
	// A commit that is gone meanwhile fails the whole fetch: the caller looks at the refs again.
	if err := c.git.fetch(ctx, c.remote, missing...); err != nil && ctx.Err() != nil {
		return nil, err
	}
	return c.git.readMessages(ctx, commits)
}

// readMessages reads commit messages in one process. What does not exist is not in the map.
func (g git) readMessages(ctx context.Context, commits []string) (map[string]string, error) {
	messages, err := g.readCommits(ctx, commits)
	for name, object := range messages {
		messages[name] = commitMessage(object)
	}
	return messages, err
}

// readCommits reads whole commits in one process. What does not exist is not in the map.
func (g git) readCommits(ctx context.Context, commits []string) (map[string]string, error) {
	return g.readObjectsOf(ctx, "commit", commits)
}

// readObjectsOf reads whole objects of one kind; others, and missing ones, are left out.
func (g git) readObjectsOf(ctx context.Context, kind string, names []string) (map[string]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	out, err := g.run(ctx, strings.Join(names, "\n")+"\n", "cat-file", "--batch=%(objectname) %(objecttype) %(objectsize)")
	if err != nil {
		return nil, err
	}
	return parseBatch(out, kind)
}

// parseBatch reads the output of `git cat-file --batch`: the objects of that kind.
func parseBatch(out, want string) (map[string]string, error) {
	objects := map[string]string{}
	for out != "" {
		header, rest, _ := strings.Cut(out, "\n")
		if strings.HasSuffix(header, " missing") {
			out = rest
			continue
		}
		var name, kind string
		var size int
		if _, err := fmt.Sscanf(header, "%s %s %d", &name, &kind, &size); err != nil || size < 0 || size >= len(rest) {
			return nil, fmt.Errorf("git cat-file: cannot read header %q", printable(header))
		}
		if kind == want {
			objects[name] = rest[:size]
		}
		out = rest[size+1:]
	}
	return objects, nil
}
