package claim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/incoming"
)

// remoteRefs stores claims on a remote, which does the compare-and-swap.
type remoteRefs struct {
	git            git.Runner // may talk to the remote
	objects        git.Store  // objects of this repository
	prefix, remote string
	most           int64         // limit of one fetch, in bytes
	limit          time.Duration // limit for fetching all claims, and again for fetching them one by one
	unkept         *sync.Map     // claims that are not stored here, by commit, so that each is fetched only once
}

func (c remoteRefs) swap(ctx context.Context, key, old, new string, also ...git.Edit) error {
	ref, limit := c.prefix+key, git.RefsTime
	if len(also) > 0 {
		limit = git.TransferTime
	}
	// The claim is the last edit, so its loss is reported before that of a branch.
	err := c.git.Push(ctx, limit, c.remote, append(also, git.Edit{Ref: ref, Old: old, New: new})...)
	moved, isMoved := errors.AsType[*git.MovedError](err)
	_, blocked := errors.AsType[*git.BlockedError](err) // concerns this issue only
	switch {
	case blocked:
		return err
	case isMoved && moved.Ref == ref, errors.Is(err, git.ErrStale) && len(also) == 0:
		return refusedSwap{err}
	case errors.Is(err, git.ErrStale), errors.Is(err, git.ErrDeclined) && len(also) == 0:
		return fmt.Errorf("%w: %w", git.ErrRemote, err)
	}
	return err
}

func (c remoteRefs) push(ctx context.Context, move git.Edit) error {
	err := c.git.Push(ctx, git.TransferTime, c.remote, move)
	if errors.Is(err, git.ErrStale) {
		return fmt.Errorf("%w: %w", git.ErrRemote, err)
	}
	return err
}

func (c remoteRefs) read(ctx context.Context, key string) (commit, message string, err error) {
	at, messages, err := c.readAll(ctx, c.prefix+key)
	if err != nil {
		return "", "", err
	}
	commit = at[c.prefix+key]
	return commit, messages[commit], nil
}

func (remoteRefs) written(string) time.Time { return time.Time{} }

func (c remoteRefs) list(ctx context.Context) (map[string]string, error) {
	at, known, err := c.readAll(ctx, c.prefix+"*")
	if err != nil && !errors.Is(err, errUnsettled) {
		return nil, err
	}
	messages, on := map[string]string{}, map[any]bool{}
	for ref, commit := range at {
		on[commit] = true
		if key, ok := strings.CutPrefix(ref, c.prefix); ok {
			messages[key] = known[commit]
		}
	}
	c.unkept.Range(func(commit, _ any) bool {
		if !on[commit] {
			c.unkept.Delete(commit)
		}
		return true
	})
	return messages, nil
}

// errUnsettled is returned together with the claims that could be read.
var errUnsettled = errors.New("claims change faster than they can be read")

// readAll reads the refs that match the pattern and the messages of their commits. It reads a claim again that changes in
// between. An unreadable claim that stays where it is gets no message.
func (c remoteRefs) readAll(ctx context.Context, pattern string) (at, messages map[string]string, err error) {
	var before map[string]string
	for range maxTries {
		if at, err = c.git.RemoteRefs(ctx, c.remote, pattern); err != nil {
			return nil, nil, err
		}
		maps.DeleteFunc(at, func(ref, _ string) bool { return !strings.HasPrefix(ref, c.prefix) })
		commits := slices.Compact(slices.Sorted(maps.Values(at)))
		same := maps.Equal(at, before)
		if messages, err = c.messages(ctx, commits, same); err != nil || same || len(messages) == len(commits) {
			return at, messages, err
		}
		before = at
	}
	return at, messages, fmt.Errorf("%w: %w", git.ErrRemote, errUnsettled)
}

// messages returns the messages of claim commits. It fetches missing commits all at once, or one by one if single is set.
// The result lacks commits that are gone from the remote and objects that are not commits.
func (c remoteRefs) messages(ctx context.Context, commits []string, single bool) (map[string]string, error) {
	room := int64(largeMax)
	known, err := c.here(ctx, commits, &room)
	if err != nil {
		return nil, err
	}
	for _, commit := range commits {
		if object, is := c.unkept.Load(commit); is {
			known[commit], _ = object.(string)
		}
	}
	missing := slices.DeleteFunc(slices.Clone(commits), func(commit string) bool { return known[commit] != "" })
	if len(missing) > 0 {
		// One missing commit fails the whole fetch: the caller reads the refs again.
		all, cancel := context.WithTimeoutCause(ctx, c.limit, git.ErrRemote)
		err := c.fetch(all, known, &room, missing...)
		hung := all.Err() != nil
		if cancel(); err != nil && (single || hung || errors.Is(err, incoming.ErrSize)) {
			c.fetchEach(ctx, known, &room, missing)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	for name, object := range known {
		known[name] = git.Body(object)
	}
	return known, nil
}

// Limits of one claim's commit, and of the large ones of a list together, in bytes. Anybody with push access can make each
// claim any size with a few bytes. Few real claims exceed some thousand bytes.
const (
	claimMax = 4 << 20
	large    = 64 << 10
	largeMax = 16 << 20
)

// here reads the commits that are in this repository. It returns tooLarge for those above the limits. room is the number of
// bytes left for large ones.
func (c remoteRefs) here(ctx context.Context, commits []string, room *int64) (map[string]string, error) {
	known := map[string]string{}
	local := c.git.With("GIT_NO_LAZY_FETCH=1") // a partial clone would fetch each commit with everything it refers to
	err := local.EachObject(ctx, commits, func(o git.Object, content io.Reader) error {
		if o.Kind != "commit" {
			return nil
		}
		if o.Size > large && (o.Size > claimMax || o.Size > *room) {
			known[o.Name] = "\n\n" + tooLarge
			return nil
		}
		if o.Size > large {
			*room -= o.Size
		}
		text, err := io.ReadAll(content)
		known[o.Name] = string(text)
		return err
	})
	return known, err
}

// fetchEach fetches as many of the commits as it can. They are tiny: a remote that needs longer than the limit hangs.
func (c remoteRefs) fetchEach(ctx context.Context, known map[string]string, room *int64, commits []string) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit, git.ErrRemote)
	defer cancel()
	for _, commit := range commits {
		if ctx.Err() != nil {
			return
		}
		_ = c.fetch(ctx, known, room, commit) // the commits that are still missing show the failure
	}
}
