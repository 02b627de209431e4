package claim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
)

// localRefs stores claims in the repository itself.
type localRefs struct {
	git    git.Runner
	prefix string
}

// errNoRemote means that branches cannot be published together with a claim that is not on a remote.
var errNoRemote = errors.New("the claim is not on a remote")

func (l localRefs) swap(ctx context.Context, key, old, new string, otherEdits ...git.Edit) error {
	if len(otherEdits) > 0 {
		return errNoRemote
	}
	var err error
	// The reason of a refusal may be gone when the ref is read, for example because the claim was just released. Then try
	// again.
	for range maxTries {
		err = l.git.MoveRefs(ctx, git.Edit{Ref: l.prefix + key, New: new, Old: old})
		if errors.Is(err, git.ErrMoved) {
			return errRefChanged
		}
		if !git.Failed(err) {
			return err
		}
	}
	return err
}

func (localRefs) push(context.Context, git.Edit) error { return errNoRemote }

func (l localRefs) read(ctx context.Context, key string) (commit, message string, err error) {
	at, err := l.git.Refs(ctx, l.prefix+key)
	if err != nil || len(at) == 0 {
		return "", "", err
	}
	commit = at[l.prefix+key]
	known, err := l.git.Objects(ctx, "commit", []string{commit})
	return commit, git.Body(known[commit]), err // the commit may be missing
}

func (l localRefs) lastMoved(key string) time.Time { return l.git.RefTime(l.prefix + key) }

// list lists the messages of the claims. Those of claims whose commit is missing are empty.
func (l localRefs) list(ctx context.Context) (map[string]string, error) {
	at, err := l.git.Refs(ctx, l.prefix)
	if err != nil {
		return nil, err
	}
	known, err := l.git.Objects(ctx, "commit", slices.Sorted(maps.Values(at)))
	if err != nil {
		return nil, err
	}
	messages := map[string]string{}
	for ref, commit := range at {
		messages[strings.TrimPrefix(ref, l.prefix)] = git.Body(known[commit])
	}
	return messages, nil
}
