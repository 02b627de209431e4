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
	out, err := l.git.Output(ctx, "for-each-ref", "--format=%(refname) %(objectname) %(contents)", "--", l.prefix+key)
	if git.Failed(err) { // the commit is missing
		at, err := l.git.Refs(ctx, l.prefix+key)
		return at[l.prefix+key], "", err
	}
	if err != nil {
		return "", "", err
	}
	out, found := strings.CutPrefix(out, l.prefix+key+" ")
	if !found { // no such ref, or only refs below that name
		return "", "", nil
	}
	commit, message, _ = strings.Cut(out, " ")
	return commit, message, nil
}

func (l localRefs) lastMoved(key string) time.Time { return l.git.RefTime(l.prefix + key) }

func (l localRefs) list(ctx context.Context) (map[string]string, error) {
	out, err := l.git.Output(ctx, "for-each-ref", "--format=%(refname) %(contents)%00", "--", l.prefix)
	if git.Failed(err) { // a ref with a missing commit makes the command fail
		return l.listReadable(ctx)
	}
	if err != nil {
		return nil, err
	}
	messages := map[string]string{}
	for claim := range strings.SplitSeq(out, "\x00") {
		if ref, message, ok := strings.Cut(strings.TrimPrefix(claim, "\n"), " "); ok {
			messages[strings.TrimPrefix(ref, l.prefix)] = message
		}
	}
	return messages, nil
}

// listReadable lists the claims if some commits are missing. Claims without a commit get an empty message.
func (l localRefs) listReadable(ctx context.Context) (map[string]string, error) {
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
