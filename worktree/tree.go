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
	"github.com/ralph-pool/ralph/worktree/record"
	"github.com/ralph-pool/ralph/worktree/refname"
	"github.com/ralph-pool/ralph/worktree/span"
)

var errDetached = errors.New("the tree is a throw-away checkout without a branch")

// Private is what a sandbox may see of git: the run's private repository, writable, and object folders, read-only.
type Private struct {
	GitDir  string
	Objects []string
	Lower   string // the folder with the files that the worktree is laid over; empty: it has all of them
	Setup   string // another one, which is over Lower: see AddSetup
}

// Inside runs a command in the run's sandbox, in the worktree's folder. An error means that the command is not known to
// have run to its end.
type Inside func(ctx context.Context, c Command) (exitCode int, err error)

// Command is one command for Inside. Env is added to the sandbox's environment.
type Command struct {
	Argv, Env      []string
	Stdout, Stderr io.Writer
}

// Tree is the worktree of one run. It is safe for concurrent use. Changes of refs and files are made one at a time for one
// key, across processes.
type Tree struct {
	repo *Repo
	name string // of its folder and of its record

	mu     sync.Mutex
	rec    record.Record // guarded by mu
	config git.Config    // guarded by mu; nil: not read yet
}

// Spec is what the tree was made for. After Rebase its Base is the new one.
func (t *Tree) Spec() Spec { return t.record().Spec }

// Dir is the absolute path of the worktree. Laid over a layer, it has only what differs. It is in a folder of its own then.
func (t *Tree) Dir() string {
	if t.record().Spec.Private {
		return filepath.Join(t.folder(), "files")
	}
	return t.folder()
}

// Layered reports that the tree is laid over a layer: only a sandbox that can show layers shows all of its files.
func (t *Tree) Layered() bool { rec := t.record(); return rec.Layer+rec.Setup != "" }

// Used reports a private tree on which a sandbox has been open: nothing is copied into it any more.
func (t *Tree) Used() bool { rec := t.record(); return rec.Spec.Private && rec.Used }

func (t *Tree) folder() string { return t.repo.path("worktrees", t.name) }

// Folders are what runs in the worktree may write: the worktree, and the private repository, which need not exist.
func (t *Tree) Folders() []string { return []string{t.Dir(), t.privateDir()} }

// Start is the commit the run began at; it differs from Base when the run continued earlier work.
func (t *Tree) Start() string { return t.record().Start }

// Unsaved reports whether something in the tree may be on no ref of ralph's.
func (t *Tree) Unsaved() bool { return t.record().InUse && !t.record().Spec.Detached }

// Waits reports that the tree is unsaved because an import failed for a reason that passes by itself: it stays, and Import
// may be called again later.
func (t *Tree) Waits() bool { rec := t.record(); return t.Unsaved() && rec.Waits() }

func (t *Tree) record() record.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rec
}

// update changes the record in memory and, durably, on disk.
func (t *Tree) update(change func(*record.Record)) error { return t.store(change, true) }

func (t *Tree) store(change func(*record.Record), durable bool) error {
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

// treeRefs are where a key's refs are; an empty one does not exist.
type treeRefs struct{ branch, work, wip string }

// tip is the last commit that is known to be imported.
func (refs treeRefs) tip(start string) string { return cmp.Or(refs.work, refs.branch, start) }

func (t *Tree) readRefs(ctx context.Context) (treeRefs, error) {
	s, n := t.Spec(), t.repo.names
	all, err := t.repo.git.Refs(ctx, refname.Branch(s.Branch), n.Work(s.Key), n.WIP(s.Key))
	if err != nil {
		return treeRefs{}, fmt.Errorf("read refs of %s: %w", s.Key, err)
	}
	return treeRefs{branch: all[refname.Branch(s.Branch)], work: all[n.Work(s.Key)], wip: all[n.WIP(s.Key)]}, nil
}

// readSpan lists the commits from the base to tip.
func (t *Tree) readSpan(ctx context.Context, tip string) (span.Span, error) {
	return t.repo.spans.Read(ctx, t.Spec().Base.Commit, tip)
}

// locked does one thing at a time for a key. doing is the beginning of each error.
func (r *Repo) locked(ctx context.Context, key, doing string, do func() error) error {
	unlock, err := filelock.Lock(ctx, r.path("locks", "key-"+key))
	if err == nil {
		defer unlock()
		err = do()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// Trees lists the worktrees ralph has made here, those of crashed runs included. The trees are
// also returned with a [*record.Errors].
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

// exists reports whether the worktree's files, and git's record of a linked one, are there.
func (t *Tree) exists() (files, admin bool) {
	_, errFiles := os.Lstat(t.Dir())
	if t.record().Spec.Private {
		return errFiles == nil, errFiles == nil
	}
	_, errAdmin := os.Lstat(filepath.Join(t.record().GitDir, "HEAD"))
	return errFiles == nil, errAdmin == nil
}

// halfMade reports that the worktree was never finished: git writes the index last. An index overrules the record, whose
// last change a power loss may have undone.
func (t *Tree) halfMade() bool {
	rec := t.record()
	_, err := os.Lstat(filepath.Join(t.adminDir(), "index"))
	return rec.Making && !rec.Used && errors.Is(err, fs.ErrNotExist)
}

// adminDir is the git directory of the tree.
func (t *Tree) adminDir() string {
	if gitDir := t.record().GitDir; gitDir != "" {
		return gitDir
	}
	return t.privateDir()
}

// userConfig is the user's git configuration as it applies in the worktree, read once for each Tree.
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
