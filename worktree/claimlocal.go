package worktree

import (
	"context"
	"errors"
	"strings"
)

// localClaims keeps claims in the repository itself.
type localClaims struct{ git git }

var _ claimStore = localClaims{}

func (l localClaims) swap(ctx context.Context, key, old, new string) error {
	args := []string{"update-ref", "--no-deref", claimRef(key), new, old}
	switch {
	case new == "":
		args = []string{"update-ref", "--no-deref", "-d", claimRef(key), old}
	case old == "":
		args[4] = strings.Repeat("0", len(new))
	}
	// A refusal whose reason is gone when the ref is read, such as a claim that was released meanwhile, is tried again.
	for tries := 1; ; tries++ {
		_, err := l.git.out(ctx, args...)
		if _, failed := errors.AsType[*GitError](err); !failed {
			return err
		}
		at, readErr := l.git.readRefs(ctx, claimRef(key))
		if readErr != nil {
			return errors.Join(err, readErr)
		}
		if at[claimRef(key)] != old {
			return errSwap
		}
		if tries == claimTries {
			return err
		}
	}
}

func (l localClaims) read(ctx context.Context, key string) (commit, message string, err error) {
	out, err := l.git.out(ctx, "for-each-ref", "--format=%(objectname) %(contents:subject)", "--", claimRef(key))
	if err != nil {
		return "", "", err
	}
	commit, message, _ = strings.Cut(out, " ")
	return commit, message, nil
}

func (l localClaims) list(ctx context.Context) (map[string]string, error) {
	out, err := l.git.out(ctx, "for-each-ref", "--format=%(refname) %(contents:subject)", "--", claimPrefix)
	if err != nil {
		return nil, err
	}
	messages := map[string]string{}
	for line := range strings.Lines(out) {
		ref, message, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		messages[strings.TrimPrefix(ref, claimPrefix)] = message
	}
	return messages, nil
}
