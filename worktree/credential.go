package worktree

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// RemoteURL is the address of a remote as git uses it; empty when there is no remote of that name.
func (r *Repo) RemoteURL(ctx context.Context, name string) (string, error) {
	has, err := r.HasRemote(ctx, name)
	if err != nil || !has {
		return "", err
	}
	return r.git.out(ctx, "remote", "get-url", "--", name)
}

// helper is a credential helper that answers from its environment: the secret is in no file and on no command line.
const helper = `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$RALPH_GIT_USER" "$RALPH_GIT_SECRET"; }; f`

// credentialEnv makes the environment that lets git log in to the host of the address, and to no other: a redirect, or
// an address that configuration has put in its place, gets nothing.
func credentialEnv(address string, credentials func(context.Context) (string, string, error)) (func(context.Context) ([]string, error), error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("credentials are for addresses of HTTPS, not %s", printable(address))
	}
	section := "credential." + u.Scheme + "://" + u.Host + ".helper"
	config := append(hardened(), [2]string{section, ""}, [2]string{section, helper})
	fixed := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(config))}
	for i := len(config) - 2; i < len(config); i++ {
		n := strconv.Itoa(i)
		fixed = append(fixed, "GIT_CONFIG_KEY_"+n+"="+config[i][0], "GIT_CONFIG_VALUE_"+n+"="+config[i][1])
	}
	return func(ctx context.Context) ([]string, error) {
		user, secret, err := credentials(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRemote, err)
		}
		if strings.ContainsAny(user+secret, "\n\x00") {
			return nil, fmt.Errorf("%w: the credentials have line ends", ErrRemote)
		}
		return append(fixed[:len(fixed):len(fixed)], "RALPH_GIT_USER="+user, "RALPH_GIT_SECRET="+secret), nil
	}, nil
}
