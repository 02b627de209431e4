package worktree

import (
	"context"
	"errors"
	"fmt"
)

// withIdent makes sure that git knows a name for commits: the user's own, or ralph's where none is configured.
func (g git) withIdent(ctx context.Context) (git, error) {
	strict := g.with("GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.useConfigOnly", "GIT_CONFIG_VALUE_0=true")
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		_, err := strict.out(ctx, "var", "GIT_"+who+"_IDENT")
		if _, failed := errors.AsType[*GitError](err); failed {
			g = g.with("GIT_"+who+"_NAME=ralph", "GIT_"+who+"_EMAIL=ralph@localhost")
		} else if err != nil {
			return g, fmt.Errorf("find the name for commits: %w", err)
		}
	}
	return g, nil
}
