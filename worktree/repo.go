package worktree

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/worktree/base"
	"github.com/ralph-pool/ralph/worktree/claim"
	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
	"github.com/ralph-pool/ralph/worktree/internal/remote"
	"github.com/ralph-pool/ralph/worktree/internal/traces"
	"github.com/ralph-pool/ralph/worktree/internal/trash"
	"github.com/ralph-pool/ralph/worktree/operation"
	"github.com/ralph-pool/ralph/worktree/record"
	"github.com/ralph-pool/ralph/worktree/span"
	"github.com/ralph-pool/ralph/worktree/statedir"
)

// Repo is the user's repository. It is safe for concurrent use.
type Repo struct {
	location Location
	opts     Options
	log      *slog.Logger
	git      git.Runner // pinned to the user's current checkout
	remote   *remote.Remote
	objects  git.Store
	refNames refname.Names
	records  record.Store
	claims   *claim.Store
	spans    *span.Reader
	trash    *trash.Bin
	tempDir  string // temporary files of this process
	self     claim.Process
	// statusTime limits git status on files that an agent can write.
	statusTime time.Duration
	now        func() time.Time
	links      diff.LinkCache
}

// Location identifies a repository and the user's current checkout of it.
type Location = git.Location

// Locate finds the repository that contains dir, without opening it.
func Locate(ctx context.Context, dir string) (Location, error) { return git.Locate(ctx, dir) }

// StateDir returns the repository's state folder below root, which has the state of all repositories; see [statedir.Find].
func StateDir(ctx context.Context, root string, p Location) (string, error) {
	return statedir.Find(ctx, root, p)
}

// staleAge is the age at which something without a living owner must be from a killed process. A lease has expired by then.
const staleAge = 15 * time.Minute

// statusTime is the default of Repo.statusTime. When it is over, the files are read with the import script instead.
const statusTime = time.Minute

// Open opens the repository whose checkout top is at dir.
func Open(ctx context.Context, dir string, o Options) (*Repo, error) {
	if strings.HasPrefix(o.Remote, "-") || o.Remote != "" && !git.ValidRef("refs/remotes/"+o.Remote) {
		return nil, fmt.Errorf("remote %q is not a valid name of a remote; list them with: git remote", o.Remote)
	}
	refs, err := refname.ForNamespace(o.Namespace)
	if err != nil {
		return nil, err
	}
	p := o.Location
	if p.Top == "" {
		if p, err = git.Locate(ctx, dir); err != nil {
			return nil, err
		}
	}
	folders := []string{"locks"}
	for _, f := range []string{"worktrees", "repos", "history", "given", "trash"} {
		folders = append(folders, filepath.Join(statedir.Namespace(o.Namespace), f))
	}
	if o.StateDir, err = statedir.Open(ctx, o.StateDir, p, folders...); err != nil {
		return nil, err
	}
	r := &Repo{
		location: p, opts: o, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), refNames: refs, statusTime: statusTime, now: time.Now,
		git:     git.New(o.StateDir).WithCache().Pin(p.GitDir, p.Common, p.Top).WithMinFree(o.MinFree),
		objects: git.Store{Dir: filepath.Join(p.Common, "objects"), SHA256: p.Format == "sha256"},
	}
	r.git = r.git.WithOwnedRefs(r.statePath("locks", "refs"), o.Sleep, refname.Own, refs.Branches)
	r.spans = &span.Reader{Git: r.git}
	if r.self, err = claim.Self(); err != nil {
		return nil, err
	}
	if r.tempDir, err = traces.MakeTempDir(r.statePath("."), r.self); err != nil && !o.Reads {
		return nil, fmt.Errorf("%w: %w", statedir.ErrFolder, err)
	}
	r.records = record.Store{Dir: r.statePath("worktrees"), Temp: r.tempDir, Entries: filepath.Join(r.location.Common, "worktrees")}
	if err := r.git.CheckVersion(ctx); err != nil {
		return nil, err
	}
	r.trash = trash.New(r.statePath("trash"), r.log)
	r.trash.Empty()
	claims := r.git
	options := remote.Options{Name: o.Remote, Credentials: o.Credentials, Sleep: o.Sleep, Watch: o.Watch}
	if r.remote, err = remote.Open(ctx, r.git, r.location.Top, options); err != nil {
		return nil, err
	}
	if o.Remote != "" {
		claims = r.remote.RemoteGit
	}
	r.claims = claim.New(claim.Config{
		Git:     claims,
		Objects: r.objects,
		Remote:  o.Remote,
		Prefix:  refs.Claims(),
		Self:    r.self,
		Left:    cmp.Or(o.HostDir, filepath.Join(o.StateDir, "left")),
		Now:     o.Now,
	})
	return r, nil
}

// statePath returns a path below the state folder. All namespaces share the locks, because they share the repository.
func (r *Repo) statePath(elem ...string) string {
	if elem[0] == "locks" {
		return filepath.Join(r.opts.StateDir, filepath.Join(elem...))
	}
	return filepath.Join(r.opts.StateDir, statedir.Namespace(r.opts.Namespace), filepath.Join(elem...))
}

// StateDir returns ralph's folder for this repository, with symbolic links resolved. All namespaces share it.
func (r *Repo) StateDir() string { return r.opts.StateDir }

// Freeing reports whether folders of removed worktrees are still being deleted, so that disk space will be freed.
func (r *Repo) Freeing() bool { return r.trash.Freeing() }

// Dir returns the top of the user's checkout.
func (r *Repo) Dir() string { return r.location.Top }

// Base resolves ref: a branch, tag, remote branch or commit. An empty ref means the branch checked out at Dir. Base wraps
// ErrNoBase if there is none or it has no commits. If names clash, a branch comes before a remote branch, and that before a
// tag.
func (r *Repo) Base(ctx context.Context, ref string) (Base, error) {
	return base.Find(ctx, r.git, r.location, ref)
}

// CheckNoOperation fails with ErrUnfinished while a merge, rebase or the like is unfinished in the user's checkout.
func (r *Repo) CheckNoOperation(ctx context.Context) error {
	return operation.CheckNone(ctx, r.git, r.location.GitDir, r.location.Top)
}

// BranchName returns the short name of the key's branch.
func (r *Repo) BranchName(key string) string {
	return strings.TrimPrefix(r.refNames.Branches, git.Heads) + key
}

// Contains reports whether commit equals outer or is an ancestor of it.
func (r *Repo) Contains(ctx context.Context, outer, commit string) (bool, error) {
	return r.git.Contains(ctx, outer, commit)
}

// HasPath reports whether the commit has a file or folder at path, relative to the top.
func (r *Repo) HasPath(ctx context.Context, commit, path string) (bool, error) {
	out, err := r.git.Output(ctx, "ls-tree", "--name-only", "-z", commit, "--", path)
	return out != "", err
}
