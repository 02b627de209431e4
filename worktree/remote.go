package worktree

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// remoteRefs reads refs on the remote by full name or pattern.
func (g git) remoteRefs(ctx context.Context, remote string, patterns ...string) (map[string]string, error) {
	ctx, cancel := limited(ctx, refsTime)
	defer cancel()
	out, err := g.out(ctx, append([]string{"ls-remote", "--refs", "--quiet", "--", remote}, patterns...)...)
	if err != nil {
		return nil, remoteError(remote, err)
	}
	refs := map[string]string{}
	for line := range strings.Lines(out) {
		sha, ref, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if ok && isObjectName(sha) {
			refs[ref] = sha
		}
	}
	return refs, nil
}

// How long a remote may take: for refs, and for what has to be transferred. One that hangs must not hold a sweep.
const (
	refsTime     = 2 * time.Minute
	transferTime = 20 * time.Minute
)

// limited bounds a command that talks to a remote.
func limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: no answer within %s", ErrRemote, limit))
}

// remoteError marks a failed command as the remote's; an end of the context stays what it is.
func remoteError(remote string, err error) error {
	if _, failed := errors.AsType[*GitError](err); !failed {
		return err
	}
	return fmt.Errorf("%w: %s: %w", ErrRemote, remote, err)
}

// fetch brings objects here, and moves no ref.
func (g git) fetch(ctx context.Context, remote string, what ...string) error {
	ctx, cancel := limited(ctx, transferTime)
	defer cancel()
	_, err := g.out(ctx, append([]string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-prune",
		"--no-auto-maintenance", "--no-recurse-submodules", "--refmap=", "--", remote}, what...)...)
	if err != nil {
		return remoteError(remote, err)
	}
	return nil
}

// errStale is a push whose ref was not, at that moment, where it was expected.
var errStale = errors.New("the ref is somewhere else")

// contended reports a refusal because of another push at the same time.
func contended(refusal string) bool {
	return strings.Contains(refusal, "cannot lock ref") || strings.Contains(refusal, "failed to update ref")
}

// push moves exactly one ref on the remote, from exactly old; an empty old means that it must not exist, an empty new
// deletes it. Its error says only that it did not work: the remote's ref says why.
func (g git) push(ctx context.Context, remote, ref, old, new string) error {
	limit := transferTime
	if strings.HasPrefix(ref, claimPrefix) {
		limit = refsTime
	}
	ctx, cancel := limited(ctx, limit)
	defer cancel()
	out, err := g.run(ctx, "", "push", "--porcelain", "--no-verify", "--no-follow-tags", "--no-recurse-submodules",
		"--no-signed", "--force-with-lease="+ref+":"+old, "--", remote, new+":"+ref)
	failed, ok := errors.AsType[*GitError](err)
	if !ok {
		return err
	}
	// The line of the ref says more than the summary on standard error.
	for line := range strings.Lines(out) {
		if parts := strings.Split(strings.TrimSpace(line), "\t"); len(parts) == 3 && parts[0] == "!" {
			why := errStale
			if strings.HasPrefix(parts[2], "[remote rejected]") && !contended(parts[2]) {
				why = ErrDeclined
			}
			return fmt.Errorf("push to %s: %w: %s: %w", remote, why, printable(parts[2]), failed)
		}
	}
	return fmt.Errorf("push to %s: %w", remote, failed)
}

// remoteBranch reads the branch on the remote and brings its commits here. Empty: there is none.
func (r *Repo) remoteBranch(ctx context.Context, branch string) (string, error) {
	if r.opts.Remote == "" {
		return "", nil
	}
	g, ref := r.remoteGit(), branchRef(branch)
	for range claimTries {
		refs, err := g.remoteRefs(ctx, r.opts.Remote, ref)
		if err != nil || refs[ref] == "" {
			return "", err
		}
		here, err := g.yes(ctx, "cat-file", "-e", refs[ref]+"^{commit}")
		if _, failed := errors.AsType[*GitError](err); err != nil && !failed {
			return "", err
		}
		if here {
			return refs[ref], nil
		}
		if err := g.fetch(ctx, r.opts.Remote, ref); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%w: branch %s changes faster than it can be fetched", ErrRemote, branch)
}

// Push pushes exactly tip to the branch on the remote, with a lease on the value that was there when the tree was
// added (or last pushed). It fails with ErrMoved when somebody else moved the branch, with ErrDeclined when the remote
// does not take it, such as for a hook or a protected branch, and wraps ErrRemote when the remote cannot be reached.
// Pushing what is there already is not an error.
func (t *Tree) Push(ctx context.Context, tip string) error {
	rec, remote := t.record(), t.repo.opts.Remote
	branch := rec.Spec.Branch
	if remote == "" {
		return fmt.Errorf("push %s: the repository was opened without a remote", branch)
	}
	if !isObjectName(tip) {
		return fmt.Errorf("push %s: %q is not a commit", branch, tip)
	}
	if rec.Lease == tip {
		return nil
	}
	g, ref := t.repo.remoteGit(), branchRef(branch)
	if err := g.push(ctx, remote, ref, rec.Lease, tip); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("push %s: %w", branch, err)
		}
		refs, readErr := g.remoteRefs(ctx, remote, ref)
		switch {
		case readErr != nil:
			return fmt.Errorf("push %s: %w", branch, readErr)
		case refs[ref] == tip: // it did arrive
		case refs[ref] != rec.Lease:
			return fmt.Errorf("push %s: %w: the branch on %s is at %s, expected %s",
				branch, ErrMoved, remote, orNone(refs[ref]), orNone(rec.Lease))
		case errors.Is(err, ErrDeclined):
			return fmt.Errorf("push %s: %w", branch, err)
		default:
			return fmt.Errorf("push %s: %w: %w", branch, ErrRemote, err)
		}
	}
	return t.update(func(rec *record) { rec.Lease = tip })
}
