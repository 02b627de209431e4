package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Spec is one run's worktree.
type Spec struct {
	Run    string `json:"run"`    // unique id of the run
	Key    string `json:"key"`    // path-safe key of the issue; names the worktree's folder and the refs
	Branch string `json:"branch"` // short branch name; "ralph/<key>" for issues
	Base   Base   `json:"base"`
	// Fresh starts at Base even where earlier work exists (which is kept under refs/ralph/old).
	Fresh bool `json:"fresh,omitempty"`
}

func (s Spec) check() error {
	if s.Run == "" || s.Base.Commit == "" {
		return errors.New("run and base are required")
	}
	if err := checkKey(s.Key); err != nil {
		return err
	}
	return checkBranch(s.Branch)
}

// folder is unique for key, branch and run, and starts with what people look for.
func (s Spec) folder() string {
	return s.Key[:min(len(s.Key), 80)] + "-" + digest(s.Key, s.Branch, s.Run)
}

// Tree is the linked, locked worktree of one run. It is safe for concurrent use; what changes refs or files is done
// one at a time for one key, across processes.
type Tree struct {
	repo *Repo
	name string // of its folder and of its record

	mu     sync.Mutex
	rec    record     // guarded by mu
	refs   *treeRefs  // guarded by mu; nil: not known
	config userConfig // guarded by mu; nil: not known
	span   span       // guarded by mu; the latest that was read, which never changes
}

// treeRefs are where a key's refs stand; an empty one does not exist.
type treeRefs struct{ branch, work, wip string }

// Spec is what the tree was made for. After Rebase its Base is the new one.
func (t *Tree) Spec() Spec { return t.record().Spec }

// Dir is the absolute path of the worktree.
func (t *Tree) Dir() string { return t.repo.path("worktrees", t.name) }

// Folders are what runs in the worktree may write: the worktree, and the private repository, which need not be there.
func (t *Tree) Folders() []string { return []string{t.Dir(), t.privateDir()} }

// Start is the commit the run began at; it differs from Base when the run continued earlier work.
func (t *Tree) Start() string { return t.record().Start }

func (t *Tree) record() record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rec
}

// update changes the record in memory and, for good, on disk.
func (t *Tree) update(change func(*record)) error { return t.store(change, true) }

// made notes that git has finished. It need not survive a power loss: an index says the same.
func (t *Tree) made() error {
	return t.store(func(rec *record) { rec.Making = false }, false)
}

func (t *Tree) store(change func(*record), durable bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	rec := t.rec
	change(&rec)
	if err := t.repo.saveRecord(t.name, rec, durable); err != nil {
		return err
	}
	t.rec = rec
	return nil
}

func (t *Tree) setRefs(refs *treeRefs) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refs = refs
}

// knownRefs are where the key's refs stand, as far as this process knows; every move compares and swaps.
func (t *Tree) knownRefs(ctx context.Context) (treeRefs, error) {
	t.mu.Lock()
	known := t.refs
	t.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	return t.readRefs(ctx)
}

func (t *Tree) readRefs(ctx context.Context) (treeRefs, error) {
	s := t.Spec()
	all, err := t.repo.readRefs(ctx, branchRef(s.Branch), workRef(s.Key), wipRef(s.Key))
	if err != nil {
		return treeRefs{}, fmt.Errorf("read refs of %s: %w", s.Key, err)
	}
	refs := treeRefs{branch: all[branchRef(s.Branch)], work: all[workRef(s.Key)], wip: all[wipRef(s.Key)]}
	t.setRefs(&refs)
	return refs, nil
}

// readSpan lists the commits from the base to tip.
func (t *Tree) readSpan(ctx context.Context, tip string) (span, error) {
	base := t.Spec().Base.Commit
	t.mu.Lock()
	known := t.span
	t.mu.Unlock()
	if known.base == base && known.tip == tip {
		return known, nil
	}
	s, err := t.repo.readSpan(ctx, base, tip)
	if err != nil {
		return span{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.span = s
	return s, nil
}

// git is pinned to the worktree through ralph's own record; the worktree's .git file is never read.
func (t *Tree) git() git {
	return newGit(t.repo.opts.StateDir, environ()).pin(t.record().GitDir, t.repo.common, t.Dir())
}

// lock serialises what is done for one key.
func (r *Repo) lock(ctx context.Context, key string) (unlock func(), err error) {
	return lockFile(ctx, r.path("locks", "key-"+key))
}

// Trees lists the worktrees ralph has made here, those of crashed runs included. A record that cannot be read is an
// error; the other trees are still returned.
func (r *Repo) Trees(ctx context.Context) ([]*Tree, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	entries, err := os.ReadDir(r.path("worktrees"))
	if err != nil {
		return nil, fmt.Errorf("list worktrees: %w", err)
	}
	var trees []*Tree
	var broken []error
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), recordSuffix)
		if !ok {
			continue
		}
		rec, err := r.loadRecord(name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			broken = append(broken, err)
		default:
			trees = append(trees, &Tree{repo: r, name: name, rec: rec})
		}
	}
	return trees, errors.Join(broken...)
}

// exists reports whether the worktree's files and git's own record of it are there.
func (t *Tree) exists() (files, admin bool) {
	_, errFiles := os.Lstat(t.Dir())
	_, errAdmin := os.Lstat(filepath.Join(t.record().GitDir, "HEAD"))
	return errFiles == nil, errAdmin == nil
}

// halfMade reports that git never finished making the worktree: it writes the index last. An index overrules the
// record, whose last change a power loss may have taken.
func (t *Tree) halfMade() bool {
	rec := t.record()
	_, err := os.Lstat(filepath.Join(rec.GitDir, "index"))
	return rec.Making && errors.Is(err, fs.ErrNotExist)
}
