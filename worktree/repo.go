package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
)

// Repo is the user's repository. It is safe for concurrent use.
type Repo struct {
	place
	opts    Options
	git     git      // pinned to the checkout that the user stands in
	net     []string // what commands that talk to a remote get in addition
	auth    func(ctx context.Context) ([]string, error)
	objects objectStore
	refs    refFiles
	claims  claimStore
	caps    Caps

	// Who this process is and what time it is; tests replace them.
	version string // of git, as it says it
	self    self
	now     func() time.Time
	alive   func(pid int, started string) bool
}

// The oldest git that has all of what is used: `worktree list -z` is the newest of it. Merging needs 2.38.
const oldestGit = "2.36"

// Open opens the repository whose checkout top is at dir.
func Open(ctx context.Context, dir string, o Options) (*Repo, error) {
	if o.StateDir == "" {
		return nil, errors.New("open repository: StateDir is required")
	}
	if strings.HasPrefix(o.Remote, "-") || o.Remote != "" && !validRef("refs/remotes/"+o.Remote) {
		return nil, fmt.Errorf("remote %q is not a valid name of a remote; list them with: git remote", o.Remote)
	}
	p, err := locate(ctx, dir)
	if err != nil {
		return nil, err
	}
	state, err := makeState(o.StateDir)
	if err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	o.StateDir = state
	r := &Repo{
		place: p, opts: o, caps: o.Caps.withDefaults(), now: time.Now, alive: proc.Alive,
		git:     newGit(state, environ()).pin(p.gitDir, p.common, p.top),
		objects: objectStore{dir: filepath.Join(p.common, "objects"), sha256: p.format == "sha256"},
		refs:    newRefFiles(p.common),
	}
	if err := r.checkVersion(ctx); err != nil {
		return nil, err
	}
	r.emptyTrash()
	if r.self, err = identify(); err != nil {
		return nil, err
	}
	r.claims = localClaims{r.git}
	if o.Remote != "" {
		if err := r.useRemote(ctx); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// makeState makes ralph's folders for this repository and returns the canonical path, the one git will print.
func makeState(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for _, sub := range []string{"worktrees", "repos", "locks", "trash", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return "", err
		}
	}
	return filepath.EvalSymlinks(dir)
}

func (r *Repo) checkVersion(ctx context.Context) error {
	out, err := r.git.out(ctx, "version")
	if err != nil {
		return err
	}
	r.version = strings.TrimPrefix(out, "git version ")
	return r.needGit(oldestGit, "ralph")
}

// needGit refuses a git that is too old for what is to be done.
func (r *Repo) needGit(oldest, what string) error {
	if olderVersion(r.version, oldest) {
		return fmt.Errorf("%s needs git %s or newer; this is git %s", what, oldest, printable(r.version))
	}
	return nil
}

// olderVersion compares major and minor numbers. What cannot be read is not older.
func olderVersion(have, need string) bool {
	h, n := strings.SplitN(have, ".", 3), strings.SplitN(need, ".", 3)
	for i := range min(len(h), len(n), 2) {
		a, errA := strconv.Atoi(h[i])
		b, errB := strconv.Atoi(n[i])
		if errA != nil || errB != nil {
			return false
		}
		if a != b {
			return a < b
		}
	}
	return false
}

// useRemote makes the remote the place of claims.
func (r *Repo) useRemote(ctx context.Context) error {
	ok, err := r.HasRemote(ctx, r.opts.Remote)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("there is no remote %q; add it with: git remote add %s URL", r.opts.Remote, r.opts.Remote)
	}
	ssh, err := r.git.out(ctx, "config", "--get", "core.sshCommand")
	if failed, isGit := errors.AsType[*GitError](err); err != nil && (!isGit || failed.ExitCode != 1) {
		return fmt.Errorf("read core.sshCommand: %w", err)
	}
	r.net = netEnv(environ(), ssh)
	if r.opts.Credentials != nil {
		url, err := r.RemoteURL(ctx, r.opts.Remote)
		if err != nil {
			return err
		}
		if r.auth, err = credentialEnv(url, r.opts.Credentials); err != nil {
			return err
		}
	}
	r.claims = remoteClaims{git: r.remoteGit(), remote: r.opts.Remote}
	return nil
}

// remoteGit is a git that may talk to the remote. It runs in the checkout: a remote's relative path starts there.
func (r *Repo) remoteGit() git {
	g := r.git.with(r.net...)
	g.dir, g.auth = r.top, r.auth
	return g
}

// Dir is the top of the user's checkout.
func (r *Repo) Dir() string { return r.top }

// HasRemote reports whether the repository has a remote of that name.
func (r *Repo) HasRemote(ctx context.Context, name string) (bool, error) {
	out, err := r.git.out(ctx, "remote")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(out) {
		if strings.TrimSuffix(line, "\n") == name {
			return true, nil
		}
	}
	return false, nil
}

// path joins below the state folder.
func (r *Repo) path(elem ...string) string {
	return filepath.Join(append([]string{r.opts.StateDir}, elem...)...)
}
