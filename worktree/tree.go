package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/ralph-pool/ralph/internal/filelock"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
	"github.com/ralph-pool/ralph/worktree/record"
	"github.com/ralph-pool/ralph/worktree/span"
)

var errDetached = errors.New("the tree is a throw-away checkout without a branch")

// Private lists what a sandbox may see of git: the run's private repository, writable, and object folders, read-only.
type Private struct {
	GitDir  string
	Objects []string
	Lower   string // the folder of the layer below the worktree; empty if the worktree has all files
	Setup   string // a folder laid over Lower; see AddSetup
}

// Inside runs a command in the run's sandbox, in the worktree. After an error, the command may not have run to its end.
type Inside func(ctx context.Context, c Command) (exitCode int, err error)

// Command is a command for Inside. Env is added to the sandbox's environment.
type Command struct {
	Argv, Env      []string
	Stdout, Stderr io.Writer
}

// Tree is the worktree of one run, safe for concurrent use. Changes are serialised per key, across processes.
type Tree struct {
	repo *Repo
	name string // name of its folder and of its record

	mu     sync.Mutex
	rec    record.Record // guarded by mu
	config git.Config    // guarded by mu; nil: not read yet
}

// Spec returns the spec that the tree was made for. After Rebase, its Base is the new one.
func (t *Tree) Spec() Spec { return t.record().Spec }

// Dir returns the absolute path of the worktree. In a layered tree it has only the files that differ from the layer.
func (t *Tree) Dir() string {
	if t.record().Spec.Private {
		return filepath.Join(t.folder(), "files")
	}
	return t.folder()
}

// Layered reports whether the tree is laid over a layer. Only a sandbox that supports layers shows all its files then.
func (t *Tree) Layered() bool { rec := t.record(); return rec.Layer+rec.Setup != "" }

// HasSandboxRun reports whether a sandbox has been open on a private tree. Nothing may be copied into it then.
func (t *Tree) HasSandboxRun() bool { rec := t.record(); return rec.Spec.Private && rec.Used }

func (t *Tree) folder() string { return t.repo.statePath("worktrees", t.name) }

// Folders returns the folders that commands in the worktree may write. The second, the private repository, need not exist.
func (t *Tree) Folders() []string { return []string{t.Dir(), t.privateDir()} }

// Start returns the commit at which the run began. It differs from Base if the run continued earlier work.
func (t *Tree) Start() string { return t.record().Start }

// Unsaved reports whether the tree may have work that is on none of ralph's refs.
func (t *Tree) Unsaved() bool { return t.record().InUse && !t.record().Spec.Detached }

// MayRetryImport reports whether the tree is unsaved because of a temporary failure of an import, which may be repeated later.
func (t *Tree) MayRetryImport() bool { rec := t.record(); return t.Unsaved() && rec.MayRetry() }

func (t *Tree) record() record.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rec
}

// updateRecord changes the record in memory and durably on disk.
func (t *Tree) updateRecord(change func(*record.Record)) error { return t.saveRecord(change, true) }

func (t *Tree) saveRecord(change func(*record.Record), durable bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	rec := t.rec
	change(&rec)
	if err := t.repo.records.Save(t.name, rec, durable); err != nil {
		return err
	}
	t.rec = rec
	return nil
}

// treeRefs are the commits of a key's refs; "" if a ref does not exist.
type treeRefs struct {
	branch, work, wip string
	left              bool // the branch was left behind work
	moved             bool // the user has moved the branch since it was left
}

// tip returns the last commit that is known to be imported.
func (refs treeRefs) tip(start string) string { return cmp.Or(refs.work, refs.branch, start) }

func (t *Tree) readRefs(ctx context.Context) (treeRefs, error) {
	s, n := t.Spec(), t.repo.refNames
	all, err := t.repo.git.Refs(ctx, refname.Branch(s.Branch), n.Work(s.Key), n.WIP(s.Key), n.OldTipPrefix(s.Key))
	if err != nil {
		return treeRefs{}, fmt.Errorf("read refs of %s: %w", s.Key, err)
	}
	refs := treeRefs{branch: all[refname.Branch(s.Branch)], work: all[n.Work(s.Key)], wip: all[n.WIP(s.Key)]}
	for ref, at := range all {
		if ref == n.Left(s.Key, at) {
			refs.left, refs.moved = refs.left || at == refs.branch, true
		}
	}
	refs.moved = refs.moved && s.Private && !refs.left && refs.branch != "" && refs.branch != refs.work
	return refs, nil
}

// readSpan lists the commits from the base to tip.
func (t *Tree) readSpan(ctx context.Context, tip string) (span.Span, error) {
	return t.repo.spans.Read(ctx, t.Spec().Base.Commit, tip)
}

// locked runs do with the key's lock held. It prefixes errors with doing.
func (r *Repo) locked(ctx context.Context, key, doing string, do func() error) error {
	unlock, err := filelock.Lock(ctx, r.statePath("locks", "key-"+key))
	if err == nil {
		defer unlock()
		err = do()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// Trees lists ralph's worktrees here, including those of crashed runs. The list is valid even with a [*record.Errors].
func (r *Repo) Trees(ctx context.Context) ([]*Tree, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	all, err := r.records.All()
	trees := make([]*Tree, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		trees = append(trees, &Tree{repo: r, name: name, rec: all[name]})
	}
	return trees, err
}

// exists reports whether the worktree's files exist, and whether git's record of a linked worktree does.
func (t *Tree) exists() (hasFiles, hasEntry bool) {
	_, errFiles := os.Lstat(t.Dir())
	if t.record().Spec.Private {
		return errFiles == nil, errFiles == nil
	}
	_, errEntry := os.Lstat(filepath.Join(t.record().GitDir, "HEAD"))
	return errFiles == nil, errEntry == nil
}

// isHalfMade reports whether making the worktree was cut short: git writes the index last. The index overrules the record,
// whose last change a power loss may have undone.
func (t *Tree) isHalfMade() bool {
	rec := t.record()
	_, err := os.Lstat(filepath.Join(t.gitDir(), "index"))
	return rec.Incomplete && !rec.Used && errors.Is(err, fs.ErrNotExist)
}

// gitDir returns the tree's git directory.
func (t *Tree) gitDir() string {
	if gitDir := t.record().GitDir; gitDir != "" {
		return gitDir
	}
	return t.privateDir()
}

// userConfig returns the user's git configuration for the worktree. It is read once per Tree.
func (t *Tree) userConfig(ctx context.Context) (git.Config, error) {
	t.mu.Lock()
	known := t.config
	t.mu.Unlock()
	if known != nil {
		return known, nil
	}
	config, err := t.git().Config(ctx)
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.config = config
	}
	return config, err
}
