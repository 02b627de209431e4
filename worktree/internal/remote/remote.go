// Package remote reads and moves branches of the remote repository that clones share.
package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/internal/incoming"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
)

// Options configures a Remote.
type Options struct {
	Name string // empty: there is no remote
	// Credentials returns user name and secret over HTTPS, and is called for each command; nil: the user's own credential
	// helpers apply.
	Credentials func(ctx context.Context) (user, secret string, err error)
	// Sleep waits between two tries; nil: real time.
	Sleep func(ctx context.Context, d time.Duration) error
	// Watch is called when a command with the remote begins, and end when it has ended; nil: nobody watches.
	Watch func(remote string) (end func())
}

// Remote is a remote of a clone, or none. It is safe for concurrent use.
type Remote struct {
	RemoteGit git.Runner // may talk to the remote
	git       git.Runner
	name      string
}

// Open makes a Remote for the clone that here is pinned to. Its commands run in the checkout at top, because a remote's
// relative path starts there.
func Open(ctx context.Context, local git.Runner, top string, o Options) (*Remote, error) {
	r := &Remote{git: local, name: o.Name}
	if o.Name == "" {
		return r, nil
	}
	ok, err := local.HasRemote(ctx, o.Name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w %q; add it with: git remote add %s URL", git.ErrNoRemote, o.Name, o.Name)
	}
	config, err := local.Config(ctx)
	if err != nil {
		return nil, err
	}
	r.RemoteGit = local.With(git.RemoteEnv(os.Environ(), config.Get("core.sshcommand"))...).WithDir(top).WithTries(&git.Tries{Sleep: o.Sleep, Watch: o.Watch})
	if o.Credentials == nil {
		return r, nil
	}
	url, err := local.RemoteURL(ctx, o.Name)
	if err != nil {
		return nil, err
	}
	auth, err := credentials(url, o.Credentials)
	r.RemoteGit = r.RemoteGit.WithAuth(auth)
	return r, err
}

// fetchTries limits how often a branch that keeps moving is fetched again.
const fetchTries = 5

// Tips returns the tips of the named branches on the remote, by branch name, and fetches their commits. It leaves out
// branches that the remote lacks.
func (r *Remote) Tips(ctx context.Context, branches ...string) (map[string]string, error) {
	if r.name == "" {
		return nil, nil
	}
	var names []string
	for _, b := range branches {
		names = append(names, refname.Branch(b))
	}
	for range fetchTries {
		refs, err := r.RemoteGit.RemoteRefs(ctx, r.name, names...)
		if err != nil {
			return nil, err
		}
		tips, missing := map[string]string{}, []string(nil)
		for i, b := range branches {
			tip := refs[names[i]]
			if tip == "" {
				continue
			}
			tips[b] = tip
			here, err := r.git.Test(ctx, "cat-file", "-e", tip+"^{commit}")
			if err != nil && !git.Failed(err) {
				return nil, err
			}
			if !here {
				missing = append(missing, names[i])
			}
		}
		if len(missing) == 0 {
			return tips, nil
		}
		if err := incoming.Fetch(ctx, r.RemoteGit, r.name, 0, missing...); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: %s changes faster than it can be fetched", git.ErrRemote, strings.Join(branches, " or "))
}

// Branches returns the tips of the remote's branches whose names begin with prefix, by ref.
func (r *Remote) Branches(ctx context.Context, prefix string) (map[string]string, error) {
	return r.RemoteGit.RemoteRefs(ctx, r.name, refname.Branch(prefix)+"*")
}

// Push moves a branch. It succeeds if the branch is already there.
func (r *Remote) Push(ctx context.Context, move git.Edit) error {
	if r.name == "" {
		return errors.New("the repository was opened without a remote")
	}
	if !git.IsObject(move.New) {
		return fmt.Errorf("%q is not a commit", move.New)
	}
	err := r.RemoteGit.Push(ctx, git.TransferTime, r.name, move)
	if errors.Is(err, git.ErrStale) {
		return fmt.Errorf("%w: %w", git.ErrRemote, err)
	}
	return err
}

// ConfigDigest returns a digest of the configuration that determines the remote's address and transport.
func (r *Remote) ConfigDigest(ctx context.Context) (string, error) {
	if r.name == "" {
		return "", nil
	}
	config, err := r.git.Config(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, s := range config {
		section, name, key := s.Split()
		switch {
		case section == "remote" && name == r.name, section == "core" && (key == "sshcommand" || key == "gitproxy"),
			section == "url", section == "http":
			_, _ = fmt.Fprintf(sum, "%s\x00%s\x00", s.Name, s.Value)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
