package cli

import (
	"errors"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/local"
	"github.com/ralph-pool/ralph/tracker/token"
	"github.com/ralph-pool/ralph/worktree"
)

// isAway reports that the tracker or the remote cannot be used now, or not with this token.
func isAway(err error) bool {
	var (
		away    *tracker.UnavailableError
		refused *tracker.RefusedError
	)
	return errors.As(err, &away) || errors.As(err, &refused) || errors.Is(err, worktree.ErrRemote)
}

// initFix is for a repository without a backlog.
const initFix = "set the repository up with: ralph init; where .ralph is already, make that folder"

// trackerFix is what to do about an error of a kind of tracker; empty when the error is enough.
func trackerFix(kind tracker.Descriptor, err error) string {
	var f *forge.Failure
	switch {
	case errors.Is(err, local.ErrNoFolder):
		return initFix
	case !errors.As(err, &f):
		return ""
	case errors.Is(err, token.ErrNone):
		return kind.LoginHint + "; set it in one of these variables, or name another source: token-env, token-file or token-command"
	case f.Reason == forge.TokenRefused:
		return kind.LoginHint
	case f.Reason == forge.Untrusted:
		return "name the authority's certificates: --ca-file FILE"
	case f.Reason == forge.NoConnection, f.Reason == forge.Unexpected:
		return "check the network, and the API's address: --forge-url URL"
	}
	return ""
}

// claimsFix is what to do about a remote that takes no claim. Git has no codes for why: its words have to do, and where
// they are others the advice is the general one.
func claimsFix(err error) string {
	if !errors.Is(err, worktree.ErrRemote) {
		return ""
	}
	const alone = "or work on this machine only: --remote none"
	says := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(strings.ToLower(err.Error()), w) {
				return true
			}
		}
		return false
	}
	switch {
	case says("no token", "get a token"):
		return "set the token that it names (token-env, token-file or token-command), " + alone
	case says("could not resolve", "failed to connect", "couldn't connect", "connection refused", "timed out", "no answer within",
		"network is unreachable", "no route to host", "connection reset", "ssl", "certificate"):
		return "the remote is not reached: look at the network and at `git remote -v`, " + alone
	case says("does not appear to be a git repository", "repository not found", "does not exist", "returned error: 404"):
		return "there is no repository at the remote's address, or the token may not see it: look at `git remote -v`, " + alone
	case says("authentication failed", "could not read username", "returned error: 401", "returned error: 403", "permission denied (publickey"):
		return "the remote refuses these credentials: give the token or key rights to push, " + alone
	}
	return "give ralph push rights for refs/ralph/*, " + alone
}
