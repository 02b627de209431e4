package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// PrivateRepo is the throw-away git directory that a sandbox sees instead of the user's.
type PrivateRepo struct {
	// Dir is its absolute path. It belongs to the sandbox: whatever is in it from now on is hostile data.
	Dir string
	// Objects are the absolute paths of the object folders it borrows from; the sandbox may read them.
	Objects []string
}

// Private makes the tree's private repository. From now on HandBack, Rebase and Remove take the agent's work from
// there; what an earlier private repository of the tree holds is handed back first.
//
// The private repository has the branch at its present tip, the base under its own name, the worktree's index, the
// user's name and those of the user's settings that decide what files look like. It has no remotes, no hooks and
// nothing of other branches. Filters (such as Git LFS) keep their definition: a program that is missing inside then
// fails a required filter instead of committing what should have been filtered. In a partial clone, objects that are
// not here yet cannot be fetched from inside.
func (t *Tree) Private(ctx context.Context) (PrivateRepo, error) {
	s := t.Spec()
	unlock, err := t.repo.lock(ctx, s.Key)
	if err != nil {
		return PrivateRepo{}, fmt.Errorf("make private repository of %s: %w", s.Key, err)
	}
	defer unlock()
	if err := t.dropPrivate(ctx); err != nil {
		return PrivateRepo{}, fmt.Errorf("make private repository of %s: %w", s.Key, err)
	}
	p, err := t.makePrivate(ctx)
	if err != nil {
		return PrivateRepo{}, errors.Join(fmt.Errorf("make private repository of %s: %w", s.Key, err), t.discardPrivate())
	}
	return p, nil
}

// DropPrivate hands back what the private repository holds and removes it; agents then work in the worktree's own git
// directory. Without a private repository it does nothing.
func (t *Tree) DropPrivate(ctx context.Context) error {
	s := t.Spec()
	unlock, err := t.repo.lock(ctx, s.Key)
	if err != nil {
		return fmt.Errorf("remove private repository of %s: %w", s.Key, err)
	}
	defer unlock()
	if err := t.dropPrivate(ctx); err != nil {
		return fmt.Errorf("remove private repository of %s: %w", s.Key, err)
	}
	return nil
}

func (t *Tree) dropPrivate(ctx context.Context) error {
	if !t.record().Private {
		return t.discardPrivate() // what a crash may have left of a half-made one
	}
	if _, err := t.handBack(ctx); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrKept, t.privateDir(), err)
	}
	if err := t.update(func(rec *record) { rec.Private, rec.Packed = false, nil }); err != nil {
		return err
	}
	return t.discardPrivate()
}

// discardPrivate deletes the private repository, its pack and the quarantine, whatever is in them.
func (t *Tree) discardPrivate() error {
	for _, dir := range []string{t.privateDir(), t.quarantineDir(), t.packDir()} {
		if err := removeTree(dir); err != nil {
			return fmt.Errorf("remove %s: %w", dir, err)
		}
	}
	return nil
}

func (t *Tree) privateDir() string { return t.repo.path("repos", t.name) }

// makePrivate builds it, and only then notes it: a record that says so is the promise that there is one.
func (t *Tree) makePrivate(ctx context.Context) (PrivateRepo, error) {
	objects, err := objectFolders(t.repo.objects.dir)
	if err != nil {
		return PrivateRepo{}, err
	}
	config, err := t.userConfig(ctx)
	if err != nil {
		return PrivateRepo{}, err
	}
	dir := t.privateDir()
	for _, sub := range []string{"hooks", "info", "objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return PrivateRepo{}, err
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return PrivateRepo{}, err
	}
	defer root.Close()
	for name, content := range map[string]string{
		"config":                  config.private(t.repo.format),
		"description":             "private repository of run " + t.Spec().Run + "\n",
		"objects/info/alternates": alternates(objects),
		"info/exclude":            config.file("core.excludesfile", "git/ignore") + t.sharedFile("info/exclude"),
		"info/attributes":         config.file("core.attributesfile", "git/attributes") + t.sharedFile("info/attributes"),
	} {
		if err := root.WriteFile(name, []byte(content), 0o600); err != nil {
			return PrivateRepo{}, err
		}
	}
	if shallow := t.sharedFile("shallow"); shallow != "" {
		if err := root.WriteFile("shallow", []byte(shallow), 0o600); err != nil {
			return PrivateRepo{}, err
		}
	}
	if err := t.seatPrivate(ctx, root, t.Spec().Base); err != nil {
		return PrivateRepo{}, err
	}
	return PrivateRepo{Dir: dir, Objects: objects}, t.update(func(rec *record) { rec.Private, rec.Packed = true, nil })
}

// seatPrivate puts the private repository where the worktree stands: branch, base, HEAD, index.
func (t *Tree) seatPrivate(ctx context.Context, root *os.Root, base Base) error {
	refs, err := t.readRefs(ctx)
	if err != nil {
		return err
	}
	if refs.branch == "" {
		return fmt.Errorf("branch %s is gone", t.Spec().Branch)
	}
	packed := map[string]string{branchRef(t.Spec().Branch): refs.branch}
	if base.Ref != "" && packed[base.Ref] == "" {
		packed[base.Ref] = base.Commit
	}
	if err := replaceFile(root, "packed-refs", []byte(packedRefs(packed))); err != nil {
		return err
	}
	for ref := range packed { // one of the agent's own would win
		if err := root.RemoveAll(filepath.FromSlash(ref)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := replaceFile(root, "HEAD", []byte("ref: "+branchRef(t.Spec().Branch)+"\n")); err != nil {
		return err
	}
	if err := t.packAlong(ctx, root, []string{refs.branch, base.Commit}); err != nil {
		return err
	}
	return t.copyIndexes(root)
}

// copyIndexes gives the private repository the worktree's index, in all its parts, and what it leaves out of the files.
// Times are kept: they say which entries git may trust.
func (t *Tree) copyIndexes(root *os.Root) error {
	gitDir := t.record().GitDir
	shared, err := filepath.Glob(filepath.Join(escapeGlob(gitDir), "sharedindex.*"))
	if err != nil {
		return err
	}
	names := []string{"index", "info/sparse-checkout"}
	for _, path := range shared {
		names = append(names, filepath.Base(path))
	}
	for _, name := range names {
		content, info, err := readRegular(filepath.Join(gitDir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := replaceFile(root, name, content); err != nil {
			return err
		}
		if err := root.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile gives the name to a new file, whatever an agent has put there.
func replaceFile(root *os.Root, name string, content []byte) error {
	temp := name + ".ralph"
	if err := root.RemoveAll(temp); err != nil {
		return err
	}
	f, err := root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if info, err := root.Lstat(name); err == nil && info.IsDir() {
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	return root.Rename(temp, name)
}

// packedRefs is the content of a packed-refs file.
func packedRefs(refs map[string]string) string {
	var b strings.Builder
	b.WriteString("# pack-refs with: \n")
	for ref, commit := range refs {
		b.WriteString(commit + " " + ref + "\n")
	}
	return b.String()
}

// sharedFile is a file of the user's git directory; empty when there is none.
func (t *Tree) sharedFile(name string) string {
	content, err := os.ReadFile(filepath.Join(t.repo.common, name))
	if err != nil || len(content) == 0 {
		return ""
	}
	return strings.TrimSuffix(string(content), "\n") + "\n"
}
