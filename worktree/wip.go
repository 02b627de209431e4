package worktree

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// saveChanges saves what differs from HEAD as a commit that no ref has yet, and returns it; empty when the files are
// HEAD's own after all. What cannot be saved is left out, and the error names it.
func (t *Tree) saveChanges(ctx context.Context, l look, before string) (string, error) {
	if t.record().Private {
		return t.saveSound(ctx, l, before)
	}
	tree, unsaved := t.snapshot(ctx, l, nil)
	if tree == "" {
		return "", unsaved
	}
	commit, err := t.commitChanges(ctx, t.repo.objects, l.head, before, tree)
	return commit, errors.Join(unsaved, err)
}

// commitChanges makes the commit of a snapshot's tree, unless the one before is of the same.
func (t *Tree) commitChanges(ctx context.Context, to objectStore, head, before, tree string) (string, error) {
	parents := []string{head}
	if before != "" {
		same, err := t.sameChanges(ctx, before, tree, head)
		if err != nil {
			return "", err
		}
		if same {
			return before, nil
		}
		parents = append(parents, before)
	}
	commit, err := to.commit(tree, parents, "Uncommitted changes of run "+t.Spec().Run, t.repo.now())
	if err != nil {
		return "", fmt.Errorf("save uncommitted changes: %w", err)
	}
	return commit, nil
}

// sameChanges reports whether the saved commit already holds exactly this tree on this parent.
func (t *Tree) sameChanges(ctx context.Context, saved, tree, head string) (bool, error) {
	out, err := t.repo.git.out(ctx, "rev-parse", saved+"^{tree}", saved+"^1")
	if err != nil {
		return false, fmt.Errorf("read saved changes: %w", err)
	}
	return out == tree+"\n"+head, nil
}

// snapshot writes the worktree's state as a tree object, through a copy of its index: neither index nor files change.
// What is in without stays as HEAD has it. The environment may say where objects go.
func (t *Tree) snapshot(ctx context.Context, l look, without map[string]bool, env ...string) (tree string, err error) {
	index := t.repo.path("tmp", "index-"+rand.Text())
	defer func() {
		// git leaves a lock beside it only when it was killed.
		_, _ = os.Remove(index), os.Remove(index+".lock")
	}()
	if err := copyIndex(filepath.Join(t.record().GitDir, "index"), index); err != nil {
		return "", fmt.Errorf("copy the worktree's index: %w", err)
	}
	// As git's check of commits does, this refuses names that any host could take for .git.
	g, err := t.filesGit(ctx, [2]string{"core.protectHFS", "true"}, [2]string{"core.protectNTFS", "true"})
	if err != nil {
		return "", err
	}
	g = g.with(append(env, "GIT_INDEX_FILE="+index)...)
	present, gone, unsaved := t.sortChanges(l.changes)
	present = slices.DeleteFunc(present, func(path string) bool { return without[path] })
	present, tooBig := t.withinCaps(present)
	if len(gone) > 0 {
		var in strings.Builder
		for _, path := range gone {
			fmt.Fprintf(&in, "0 %s\t%s\x00", strings.Repeat("0", len(l.head)), path)
		}
		if _, err := g.run(ctx, in.String(), "update-index", "-z", "--index-info"); err != nil {
			return "", fmt.Errorf("save uncommitted changes: %w", err)
		}
	}
	refused, err := g.indexFiles(ctx, present)
	if err != nil {
		return "", fmt.Errorf("save uncommitted changes: %w", err)
	}
	ignored, err := g.ignored(ctx, present)
	if err != nil {
		return "", fmt.Errorf("save uncommitted changes: %w", err)
	}
	refused = slices.Compact(slices.Sorted(slices.Values(slices.Concat(refused, ignored))))
	tree, err = g.out(ctx, "write-tree")
	if err != nil {
		return "", fmt.Errorf("save uncommitted changes: %w", err)
	}
	return tree, errors.Join(unsaved, tooBig, t.explainUnsaved(refused))
}

// explainUnsaved names files that are not in the snapshot; nil when there are none.
func (t *Tree) explainUnsaved(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	return fmt.Errorf("%d of the uncommitted files cannot be read or have a name that git refuses, the rest is saved; first: %s",
		len(paths), printable(filepath.Join(t.Dir(), paths[0])))
}

// sortChanges tells what is to be read from the worktree from what is gone there. Nested repositories give their
// files: as a gitlink git would save nothing of them.
func (t *Tree) sortChanges(changes []change) (present, gone []string, err error) {
	root, err := os.OpenRoot(t.Dir())
	if err != nil {
		return nil, nil, fmt.Errorf("read worktree: %w", err)
	}
	defer root.Close()
	var nested []error
	for _, c := range changes {
		switch {
		case c.nested():
			files, err := nestedFiles(root, strings.TrimSuffix(c.path, "/"))
			present, nested = append(present, files...), append(nested, err)
		case !c.unsaved:
		case isThere(root, c):
			present = append(present, c.path)
		default:
			gone = append(gone, c.path)
		}
	}
	return present, gone, errors.Join(nested...)
}

// isThere reports whether the path is a file, a link or a gitlink's folder, reached through real folders only: git
// saves nothing that lies behind a link.
func isThere(root *os.Root, c change) bool {
	for dir := filepath.Dir(c.path); dir != "."; dir = filepath.Dir(dir) {
		if info, err := root.Lstat(dir); err != nil || !info.IsDir() {
			return false
		}
	}
	info, err := root.Lstat(c.path)
	return err == nil && (!info.IsDir() || c.gitlink)
}

// nestedFiles lists the files of a nested repository, without its git directory.
func nestedFiles(root *os.Root, dir string) ([]string, error) {
	var files []string
	err := fs.WalkDir(root.FS(), dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.EqualFold(d.Name(), ".git") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() || d.Type()&fs.ModeSymlink != 0 {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return files, fmt.Errorf("read nested repository %s: %w", printable(dir), err)
	}
	return files, nil
}

// indexFiles puts the files' content into the index. Where git refuses a batch for one bad file, halving it finds that
// file, so that all others get in.
func (g git) indexFiles(ctx context.Context, paths []string) (refused []string, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	_, err = g.run(ctx, strings.Join(paths, "\x00")+"\x00",
		"update-index", "--add", "--replace", "--ignore-skip-worktree-entries", "-z", "--stdin")
	if err == nil {
		return nil, nil
	}
	if _, failed := errors.AsType[*GitError](err); !failed {
		return nil, err
	}
	if len(paths) == 1 {
		return paths, nil
	}
	half := len(paths) / 2
	for _, part := range [][]string{paths[:half], paths[half:]} {
		more, err := g.indexFiles(ctx, part)
		if err != nil {
			return nil, err
		}
		refused = append(refused, more...)
	}
	return refused, nil
}

// copyIndex copies an index with its time, by which git knows which entries it may trust. Without one there is
// nothing to copy.
func copyIndex(from, to string) error {
	content, info, err := readRegular(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// readRegular reads a file that an agent could have replaced by a link or a pipe.
func readRegular(path string) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", path)
	}
	content, err := io.ReadAll(f)
	return content, info, err
}

// lastKnownHead is the newest commit in the log of the worktree's HEAD that exists: what is left when an agent deletes
// the branch it stands on. Empty when there is none.
func (t *Tree) lastKnownHead(ctx context.Context) (string, error) {
	content, _, err := readRegular(filepath.Join(t.record().GitDir, "logs", "HEAD"))
	if err != nil {
		return "", nil //nolint:nilerr // no log, no answer
	}
	lines := bytes.Split(content, []byte("\n"))
	for tried := 0; len(lines) > 0 && tried < 10; lines = lines[:len(lines)-1] {
		fields := bytes.SplitN(lines[len(lines)-1], []byte(" "), 3)
		if len(fields) < 3 || !isObjectName(string(fields[1])) || bytes.Trim(fields[1], "0") == nil {
			continue
		}
		tried++
		sha := string(fields[1])
		ok, err := t.repo.git.yes(ctx, "cat-file", "-e", sha+"^{commit}")
		if _, failed := errors.AsType[*GitError](err); err != nil && !failed {
			return "", err
		}
		if ok {
			return sha, nil
		}
	}
	return "", nil
}
