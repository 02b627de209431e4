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
	"github.com/ralph-pool/ralph/worktree/internal/incoming"
)

// remoteRefs stores claims on a remote, which does the compare-and-swap.
type remoteRefs struct {
	git            git.Runner // may talk to the remote
	objects        git.Store  // objects of this repository
	prefix, remote string
	maxFetch       int64         // limit of one fetch, in bytes
	fetchTimeout   time.Duration // limit for fetching all claims, and again for fetching them one by one
	notStored      *sync.Map     // claims that are not stored here, by commit, so that each is fetched only once
}

func (c remoteRefs) swap(ctx context.Context, key, old, new string, otherEdits ...git.Edit) error {
	ref, limit := c.prefix+key, git.RefsTime
	if len(otherEdits) > 0 {
		limit = git.TransferTime
	}
	// The claim is the last edit, so its loss is reported before that of a branch.
	err := c.git.Push(ctx, limit, c.remote, append(otherEdits, git.Edit{Ref: ref, Old: old, New: new})...)
	moved, isMoved := errors.AsType[*git.MovedError](err)
	_, blocked := errors.AsType[*git.BlockedError](err) // concerns this issue only
	switch {
	case blocked:
		return err
	case isMoved && moved.Ref == ref, errors.Is(err, git.ErrStale) && len(otherEdits) == 0:
		return refChangedError{err}
	case errors.Is(err, git.ErrStale), errors.Is(err, git.ErrDeclined) && len(otherEdits) == 0:
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

func (remoteRefs) lastMoved(string) time.Time { return time.Time{} }

func (c remoteRefs) list(ctx context.Context) (map[string]string, error) {
	at, known, err := c.readAll(ctx, c.prefix+"*")
	if err != nil && !errors.Is(err, errUnsettled) {
		return nil, err
	}
	messages, current := map[string]string{}, map[any]bool{}
	for ref, commit := range at {
		current[commit] = true
		if key, ok := strings.CutPrefix(ref, c.prefix); ok {
			messages[key] = known[commit]
		}
	}
	c.notStored.Range(func(commit, _ any) bool {
		if !current[commit] {
			c.notStored.Delete(commit)
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

// messages returns the messages of claim commits. It fetches missing commits all at once, or one by one if oneByOne is set.
// The result lacks commits that are gone from the remote and objects that are not commits.
func (c remoteRefs) messages(ctx context.Context, commits []string, oneByOne bool) (map[string]string, error) {
	bytesLeft := int64(maxLargeBytes)
	known, err := c.readLocal(ctx, commits, &bytesLeft)
	if err != nil {
		return nil, err
	}
	for _, commit := range commits {
		if object, is := c.notStored.Load(commit); is {
			known[commit], _ = object.(string)
		}
	}
	missing := slices.DeleteFunc(slices.Clone(commits), func(commit string) bool { return known[commit] != "" })
	if len(missing) > 0 {
		// One missing commit fails the whole fetch: the caller reads the refs again.
		fetchCtx, cancel := context.WithTimeoutCause(ctx, c.fetchTimeout, git.ErrRemote)
		err := c.fetch(fetchCtx, known, &bytesLeft, missing...)
		timedOut := fetchCtx.Err() != nil
		if cancel(); err != nil && (oneByOne || timedOut || errors.Is(err, incoming.ErrSize)) {
			c.fetchEach(ctx, known, &bytesLeft, missing)
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
	maxClaimBytes = 4 << 20
	largeBytes    = 64 << 10
	maxLargeBytes = 16 << 20
)

// readLocal reads the commits that are in this repository. It returns tooLarge for those above the limits. bytesLeft is the
// number of bytes left for large ones.
func (c remoteRefs) readLocal(ctx context.Context, commits []string, bytesLeft *int64) (map[string]string, error) {
	known := map[string]string{}
	local := c.git.With("GIT_NO_LAZY_FETCH=1") // a partial clone would fetch each commit with everything it refers to
	err := local.EachObject(ctx, commits, func(o git.Object, content io.Reader) error {
		if o.Kind != "commit" {
			return nil
		}
		if o.Size > largeBytes && (o.Size > maxClaimBytes || o.Size > *bytesLeft) {
			known[o.Name] = "\n\n" + tooLarge
			return nil
		}
		if o.Size > largeBytes {
			*bytesLeft -= o.Size
		}
		text, err := io.ReadAll(content)
		known[o.Name] = string(text)
		return err
	})
	return known, err
}

// fetchEach fetches as many of the commits as it can. They are tiny: a remote that needs longer than the limit hangs.
func (c remoteRefs) fetchEach(ctx context.Context, known map[string]string, bytesLeft *int64, commits []string) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.fetchTimeout, git.ErrRemote)
	defer cancel()
	for _, commit := range commits {
		if ctx.Err() != nil {
			return
		}
		_ = c.fetch(ctx, known, bytesLeft, commit) // the commits that are still missing show the failure
	}
}
