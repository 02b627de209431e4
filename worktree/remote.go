package worktree

import (
	"context"
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/note"
	"github.com/ralph-pool/ralph/worktree/record"
	"github.com/ralph-pool/ralph/worktree/refname"
)

// useRemote sets up talking to the remote. It runs in the checkout, because a remote's relative path starts there.
func (r *Repo) useRemote(ctx context.Context) error {
	remote := r.opts.Remote
	ok, err := r.git.HasRemote(ctx, remote)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w %q; add it with: git remote add %s URL", git.ErrNoRemote, remote, remote)
	}
	ssh, err := r.git.Out(ctx, "config", "--get", "core.sshCommand")
	if err != nil && git.ExitCode(err) != 1 {
		return fmt.Errorf("read core.sshCommand: %w", err)
	}
	r.remote = r.git.With(git.RemoteEnv(ssh)...).In(r.top).Repeating(&git.Tries{Sleep: r.opts.Sleep})
	if r.opts.Credentials == nil {
		return nil
	}
	url, err := r.git.RemoteURL(ctx, remote)
	if err != nil {
		return err
	}
	auth, err := git.Credentials(url, r.opts.Credentials)
	r.remote = r.remote.WithAuth(auth)
	return err
}

// Remote is the name of the remote that holds claims and gets branches; empty when there is none.
func (r *Repo) Remote() string { return r.opts.Remote }

// Notes are the notes on commits, which the remote shares.
func (r *Repo) Notes() note.Store {
	return note.Store{Git: r.git, Objects: r.objects, Talk: r.remote, Remote: r.opts.Remote}
}

// RemoteURL is the address of a remote of the checkout at top; empty when there is none. It opens no repository.
func RemoteURL(ctx context.Context, top, name string) (string, error) {
	return git.New(top).RemoteURL(ctx, name)
}

// fetchTries bounds how often a branch that keeps moving is fetched again.
const fetchTries = 5

// RemoteBranch is where the branch is on the remote, with its commits fetched; empty when the remote has none.
func (r *Repo) RemoteBranch(ctx context.Context, branch string) (string, error) {
	if r.opts.Remote == "" {
		return "", nil
	}
	ref := refname.Branch(branch)
	for range fetchTries {
		refs, err := r.remote.RemoteRefs(ctx, r.opts.Remote, ref)
		if err != nil || refs[ref] == "" {
			return "", err
		}
		here, err := r.git.Yes(ctx, "cat-file", "-e", refs[ref]+"^{commit}")
		if err != nil && !git.Failed(err) {
			return "", err
		}
		if here {
			return refs[ref], nil
		}
		if err := r.remote.Fetch(ctx, r.opts.Remote, ref); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%w: branch %s changes faster than it can be fetched", ErrRemote, branch)
}

// RemoteBranches are where the remote's branches are whose names begin with the prefix, by their refs.
func (r *Repo) RemoteBranches(ctx context.Context, prefix string) (map[string]string, error) {
	return r.remote.RemoteRefs(ctx, r.opts.Remote, refname.Branch(prefix)+"*")
}

// Push pushes exactly tip to the branch on the remote, with a lease on the value that was there when the tree was
// added (or last pushed). It fails with ErrMoved when somebody else moved the branch and with ErrDeclined when the remote
// refuses, such as by a hook or a protected branch, and wraps ErrRemote when the remote cannot be reached. Pushing what
// is there already is not an error.
func (t *Tree) Push(ctx context.Context, tip string) error {
	rec := t.record()
	if rec.Lease == tip {
		return nil
	}
	if err := t.repo.push(ctx, rec.Spec.Branch, rec.Lease, tip); err != nil {
		return fmt.Errorf("push %s: %w", rec.Spec.Branch, err)
	}
	return t.update(func(rec *record.Record) { rec.Lease = tip })
}

// push moves the branch on the remote from exactly old.
func (r *Repo) push(ctx context.Context, branch, old, tip string) error {
	remote, ref := r.opts.Remote, refname.Branch(branch)
	if remote == "" {
		return errors.New("the repository was opened without a remote")
	}
	if !git.IsObject(tip) {
		return fmt.Errorf("%q is not a commit", tip)
	}
	err := r.remote.Push(ctx, git.TransferTime, remote, ref, old, tip)
	if err == nil || ctx.Err() != nil {
		return err
	}
	refs, readErr := r.remote.RemoteRefs(ctx, remote, ref)
	switch {
	case readErr != nil:
		return readErr
	case refs[ref] == tip: // it did arrive
		return nil
	case refs[ref] != old:
		return fmt.Errorf("%w: the branch on %s is at %s, expected %s",
			ErrMoved, remote, git.OrNothing(refs[ref]), git.OrNothing(old))
	case errors.Is(err, ErrDeclined), errors.Is(err, ErrRemote):
		return err
	}
	return fmt.Errorf("%w: %w", ErrRemote, err)
}
