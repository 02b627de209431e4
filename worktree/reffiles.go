package worktree

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// packedLimit is the size from which packed-refs is git's to read: it knows how to search a large one.
const packedLimit = 1 << 20

// refFiles reads refs from the repository's files: a process for each look would cost more than most of what is done
// for an issue. It answers the plain cases only, exactly as git would; everything else is git's to answer.
type refFiles struct {
	common string
	// folds: upper and lower case are one on this file system. A file that is found need not be the ref that was meant.
	folds bool
}

func newRefFiles(common string) refFiles {
	exact, err := os.Lstat(filepath.Join(common, "HEAD"))
	other, errOther := os.Lstat(filepath.Join(common, "head"))
	return refFiles{common: common, folds: err != nil || errOther == nil && os.SameFile(exact, other)}
}

// readRefs is git's readRefs, without a process where the files say enough.
func (r *Repo) readRefs(ctx context.Context, names ...string) (map[string]string, error) {
	if refs, ok := r.refs.read(names); ok && ctx.Err() == nil {
		return refs, nil
	}
	return r.git.readRefs(ctx, names...)
}

// read reads refs by their full names; a name that ends in a slash means everything below it. ok is false where git
// has to be asked.
func (f refFiles) read(names []string) (refs map[string]string, ok bool) {
	if f.folds || f.inTables() {
		return nil, false
	}
	refs = map[string]string{}
	var missing []string
	for _, name := range names {
		if !validRef(strings.TrimSuffix(name, "/")) {
			return nil, false
		}
		sha, known := f.loose(name)
		switch {
		case !known:
			return nil, false
		case sha == "":
			missing = append(missing, name)
		default:
			refs[name] = sha
		}
	}
	// In this order: git packs a ref before it deletes its file.
	return refs, len(missing) == 0 || f.nonePacked(missing)
}

// inTables reports a repository that keeps its refs in another format.
func (f refFiles) inTables() bool {
	_, err := os.Lstat(filepath.Join(f.common, "reftable"))
	return !errors.Is(err, fs.ErrNotExist)
}

// loose reads a ref's own file; empty when there is none. A folder is not looked into, only whether it exists.
func (f refFiles) loose(name string) (sha string, known bool) {
	path := filepath.Join(f.common, filepath.FromSlash(name))
	if strings.HasSuffix(name, "/") {
		_, err := os.Lstat(path)
		return "", absent(err)
	}
	content, _, err := readRegular(path)
	if err != nil {
		return "", absent(err)
	}
	sha, whole := strings.CutSuffix(string(content), "\n")
	return sha, whole && isObjectName(sha)
}

func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// nonePacked reports that packed-refs has none of the names.
func (f refFiles) nonePacked(names []string) bool {
	path := filepath.Join(f.common, "packed-refs")
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil || info.Size() > packedLimit {
		return false
	}
	packed, _, err := readRegular(path)
	if err != nil {
		return false
	}
	for _, name := range names {
		entry := " " + name
		if !strings.HasSuffix(name, "/") {
			entry += "\n"
		}
		if bytes.Contains(packed, []byte(entry)) {
			return false
		}
	}
	return true
}

// headBranch is the full name of the branch that the HEAD of a git directory is on; ok is false where git has to be
// asked.
func (f refFiles) headBranch(gitDir string) (ref string, ok bool) {
	if f.folds || f.inTables() {
		return "", false
	}
	content, _, err := readRegular(filepath.Join(gitDir, "HEAD"))
	if err != nil {
		return "", false
	}
	ref, isRef := strings.CutPrefix(string(content), "ref: ")
	ref, whole := strings.CutSuffix(ref, "\n")
	return ref, isRef && whole && strings.HasPrefix(ref, "refs/heads/") && validRef(ref)
}

// all reads every ref but the symbolic ones, which are at another's commit; ok is false where git has to be asked.
func (f refFiles) all() (refs map[string]string, ok bool) {
	if f.inTables() {
		return nil, false
	}
	refs = map[string]string{}
	// In this order: git packs a ref before it deletes its file.
	err := filepath.WalkDir(filepath.Join(f.common, "refs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(f.common, path)
		if err != nil {
			return err
		}
		if name = filepath.ToSlash(name); !validRef(name) {
			return nil // a lock, say
		}
		content, _, err := readRegular(path)
		if err != nil {
			return err
		}
		if commit, whole := strings.CutSuffix(string(content), "\n"); whole && isObjectName(commit) {
			refs[name] = commit
		} else if !strings.HasPrefix(commit, "ref: refs/") {
			return errors.New("git has to read it")
		}
		return nil
	})
	if err != nil {
		return nil, false
	}
	path := filepath.Join(f.common, "packed-refs")
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return refs, true
	}
	if err != nil || info.Size() > packedLimit {
		return nil, false
	}
	packed, _, err := readRegular(path)
	if err != nil {
		return nil, false
	}
	for name, commit := range parsePacked(string(packed)) {
		if refs[name] == "" {
			refs[name] = commit
		}
	}
	return refs, true
}
