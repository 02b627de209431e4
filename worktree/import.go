package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// inspectPrivate is inspect for a tree with a private repository: it brings the commit that HEAD is at, with all that
// it needs, into the user's repository, and moves the worktree's own index there. No ref moves.
func (t *Tree) inspectPrivate(ctx context.Context, files bool) (look, error) {
	g, err := t.filesGit(ctx)
	if err != nil {
		return look{}, err
	}
	head, trouble := t.bringIn(ctx)
	if head == "" {
		return look{}, trouble
	}
	l := look{head: head, branch: "(private)", partial: trouble != nil}
	if !files {
		return l, trouble
	}
	if err := t.moveIndex(ctx, g, head); err != nil {
		return l, errors.Join(trouble, err)
	}
	seen, err := t.statusOfHostile(ctx, g)
	if err != nil {
		return l, errors.Join(trouble, err)
	}
	for _, c := range seen.changes {
		// The index is at the new commit and the branch may still be at the old one: what differs between these two is
		// nobody's change.
		if c.unsaved {
			l.changes = append(l.changes, c)
		}
	}
	return l, trouble
}

// filesGit is git for looking at files that an agent has written. Where the agent cannot write the configuration,
// nothing that it names is run, and more is set.
func (t *Tree) filesGit(ctx context.Context, more ...[2]string) (git, error) {
	if !t.record().Private {
		return t.git(), nil
	}
	config, err := t.userConfig(ctx)
	if err != nil {
		return git{}, err
	}
	return t.git().with(config.inert(more...)...), nil
}

// bringIn imports the commit that the private repository's HEAD is at. Where HEAD leads nowhere, the newest commit
// that can be had is taken instead, at the least the last one handed back. The error says what could not be had.
func (t *Tree) bringIn(ctx context.Context) (string, error) {
	refs, err := t.readRefs(ctx)
	if err != nil {
		return "", err
	}
	last := refs.tip(t.Start())
	root, err := os.OpenRoot(t.privateDir())
	if err != nil {
		return last, fmt.Errorf("private repository of %s cannot be read: %w", t.Spec().Key, err)
	}
	defer root.Close()
	tried := readHead(root, t.Spec().Branch).commits
	if len(tried) == 0 {
		return last, fmt.Errorf("HEAD of the private repository %s is at no commit", t.privateDir())
	}
	var trouble error
	for i, commit := range tried {
		err := t.bringCommit(ctx, root, commit, refs)
		if err == nil {
			if i > 0 && trouble != nil {
				trouble = fmt.Errorf("what %s was at cannot be taken, %s is: %w", t.Spec().Branch, short(commit), trouble)
			}
			return commit, trouble
		}
		if ctx.Err() != nil {
			return "", err
		}
		if trouble == nil {
			trouble = fmt.Errorf("import commit %s: %w", short(commit), err)
		}
	}
	return last, trouble
}

// bringCommit imports one commit and what it needs.
func (t *Tree) bringCommit(ctx context.Context, root *os.Root, commit string, refs treeRefs) (err error) {
	known := map[string]bool{t.Spec().Base.Commit: true, t.Start(): true}
	for _, at := range []string{refs.branch, refs.work, refs.wip} {
		if at != "" {
			known[at] = true
		}
	}
	if known[commit] {
		return nil
	}
	if len(commit) != len(t.Start()) {
		return fmt.Errorf("%s is not a name of this repository's format", printable(commit))
	}
	loose := &looseObjects{
		root: root, caps: t.repo.capsNow(), nameSz: len(commit) / 2, known: known, fans: map[string]bool{}, seen: map[string]bool{},
	}
	if err := loose.collect(ctx, commit); err != nil {
		return err
	}
	packs, err := packsOf(root, t.repo.capsNow())
	if err != nil {
		return err
	}
	if len(loose.found) == 0 && len(packs) == 0 {
		return t.isCommit(ctx, t.repo.git, commit)
	}
	q, err := t.openQuarantine()
	if err != nil {
		return fmt.Errorf("make the quarantine: %w", err)
	}
	defer func() { err = errors.Join(err, q.close()) }()
	if err := q.fill(ctx, root, loose, packs); err != nil {
		return err
	}
	// A loose object that is a commit is the commit of that name, or git finds none of that name below.
	if !loose.startsAt(commit) {
		if err := t.isCommit(ctx, q.git, commit); err != nil {
			return err
		}
	}
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	pack, objects, err := q.accept(ctx, []string{commit}, names, len(packs) > 0)
	if err != nil {
		return err
	}
	return q.move(ctx, pack, objects)
}

// isCommit makes sure that there is such an object and that it is a commit.
func (t *Tree) isCommit(ctx context.Context, g git, name string) error {
	kind, err := g.out(ctx, "cat-file", "-t", name)
	if _, failed := errors.AsType[*GitError](err); failed {
		return fmt.Errorf("commit %s is nowhere", short(name))
	}
	if err != nil {
		return err
	}
	if kind != "commit" {
		return fmt.Errorf("%s is a %s, not a commit", short(name), kind)
	}
	return nil
}

// fill brings loose objects and packs in. A pack that git refuses is left out: if anything in it is needed, that is
// missed later.
func (q *quarantine) fill(ctx context.Context, root *os.Root, loose *looseObjects, packs []string) error {
	for _, name := range packs {
		f, err := openWithin(root, name)
		if err != nil {
			continue
		}
		err = q.addPack(ctx, f, false)
		if err := errors.Join(err, f.Close()); err != nil {
			if ctx.Err() != nil {
				return err
			}
			q.tree.repo.opts.Log.Warn().Err(err).Str("pack", name).Msg("pack of an agent left out")
		}
	}
	if len(loose.found) == 0 {
		return nil
	}
	from, to := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := loose.writePack(to)
		written <- err
		_ = to.CloseWithError(err) // always nil
	}()
	err := q.addPack(ctx, from, len(packs) == 0)
	_ = from.Close() // always nil; the writer ends
	if werr := <-written; werr != nil && !errors.Is(werr, io.ErrClosedPipe) {
		return werr
	}
	return err
}

// packsOf lists the packs of a private repository.
func packsOf(root *os.Root, caps Caps) ([]string, error) {
	dir, err := root.Open("objects/pack")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var packs []string
	var size int64
	for {
		entries, err := dir.ReadDir(1000)
		for _, e := range entries {
			if !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), ".pack") {
				continue
			}
			info, err := e.Info()
			if err != nil {
				continue
			}
			packs = append(packs, "objects/pack/"+e.Name())
			if size += info.Size(); size > caps.Size || len(packs) > packLimit {
				return nil, fmt.Errorf("%d packs of %d bytes so far: %w", len(packs), size, errTooBig)
			}
		}
		if err == io.EOF {
			return packs, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// packLimit is how many packs an agent may leave: each costs a process.
const packLimit = 200

// moveIndex puts the worktree's index to the commit. Entries that stay keep what git knows of their files, so that only
// what changed is read again. It is written beside the index: whatever dies here leaves no lock.
func (t *Tree) moveIndex(ctx context.Context, g git, commit string) error {
	gitDir := t.record().GitDir
	index := filepath.Join(gitDir, "index")
	next := index + ".ralph"
	for _, path := range []string{next, next + ".lock"} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := copyIndex(index, next); err != nil {
		return fmt.Errorf("copy the worktree's index: %w", err)
	}
	if _, err := g.with("GIT_INDEX_FILE="+next).out(ctx, "read-tree", "-m", "-i", commit); err != nil {
		return fmt.Errorf("move the worktree's index: %w", err)
	}
	return os.Rename(next, index)
}

// attachPrivate puts HEAD of the private repository on the branch, at the commit that was handed back, unless it is
// there or a rebase or the like is under way. The next agent is told to work on that branch.
func (t *Tree) attachPrivate(commit string) {
	root, err := os.OpenRoot(t.privateDir())
	if err != nil {
		return // the next look says so
	}
	defer root.Close()
	ref := branchRef(t.Spec().Branch)
	h := readHead(root, t.Spec().Branch)
	if h.midway || h.onRef == ref && len(h.commits) > 0 && h.commits[0] == commit {
		return
	}
	err = root.MkdirAll(filepath.FromSlash(filepath.Dir(ref)), 0o700)
	if err == nil {
		err = replaceFile(root, filepath.FromSlash(ref), []byte(commit+"\n"))
	}
	if err == nil {
		err = replaceFile(root, "HEAD", []byte("ref: "+ref+"\n"))
	}
	if err != nil { // an agent can spoil what is its own
		t.repo.opts.Log.Warn().Err(err).Str("repository", t.privateDir()).Msg("private repository left as it is")
	}
}

// reseatPrivate lets the private repository follow what the host has done to the worktree.
func (t *Tree) reseatPrivate(ctx context.Context, base Base) error {
	root, err := os.OpenRoot(t.privateDir())
	if err != nil {
		return fmt.Errorf("move the private repository: %w", err)
	}
	defer root.Close()
	if err := t.seatPrivate(ctx, root, base); err != nil {
		return fmt.Errorf("move the private repository: %w", err)
	}
	return nil
}
