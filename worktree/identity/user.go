package identity

import (
	"context"
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/worktree/git"
)

// ErrNone means that git does not know the user's name and e-mail address, which commits need.
var ErrNone = errors.New("git has no name and e-mail address for commits")

// User returns the user's name and address from git's configuration, or ralph's with ErrNone.
func User(ctx context.Context, g git.Runner) (Ident, error) {
	config, err := g.Config(ctx)
	if err != nil {
		return Ident{}, err
	}
	known, err := g.HasIdent(ctx)
	if err == nil && !known {
		err = ErrNone
	}
	return UserOrRalph(config), err
}

// Check checks that commits can be made as the identity asks: git knows the user's name where it is needed, and can sign.
// environ is the environment of agents that commit with the user's own git configuration; nil means that there are none.
// temp is a folder for temporary files.
func (w Writer) Check(ctx context.Context, who Identity, environ []string, temp string) error {
	user, err := User(ctx, w.Git)
	unknown := errors.Is(err, ErrNone)
	if unknown && !who.NeedsUser() {
		err = nil
	}
	if err == nil && environ != nil && who.Author == (Ident{}) {
		known, failed := w.Git.WithCommitter(environ).HasIdent(ctx)
		switch {
		case failed != nil:
			err = failed
		case !known && unknown:
			err = ErrNone
		case !known:
			err = fmt.Errorf("%w in the sandbox: its environment hides this machine's git configuration", ErrNone)
		}
	}
	if err != nil || who.Sign == "" {
		return err
	}
	w.Identity = who.For(user)
	return w.Try(ctx, temp)
}
