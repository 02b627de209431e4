package remote

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// helper is a credential helper that answers from its environment, so that the secret is in no file and on no command line.
const helper = `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$RALPH_GIT_USER" "$RALPH_GIT_SECRET"; }; f`

// credentials returns a function for [git.Runner.WithAuth] with which git can log in to the host of the address, and to no
// other: after a redirect, or with an address replaced by configuration, git gets no secret.
func credentials(address string, get func(context.Context) (user, secret string, err error)) (func(context.Context) ([]string, error), error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("credentials are only sent to addresses of HTTPS, not to %s", git.Printable(address))
	}
	section := "credential." + u.Scheme + "://" + u.Host + ".helper"
	fixed := git.HardenedEnv(git.Setting{Name: section}, git.Setting{Name: section, Value: helper})
	return func(ctx context.Context) ([]string, error) {
		user, secret, err := get(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", git.ErrRemote, err)
		}
		if strings.ContainsAny(user+secret, "\n\x00") {
			return nil, fmt.Errorf("%w: the credentials contain a line break", git.ErrRemote)
		}
		return append(slices.Clip(fixed), "RALPH_GIT_USER="+user, "RALPH_GIT_SECRET="+secret), nil
	}, nil
}
