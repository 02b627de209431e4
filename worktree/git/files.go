package git

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// packedLimit is the size from which packed-refs is left to git, which searches a large one faster.
const packedLimit = 1 << 20

// refFiles reads refs from the repository's files, because a process costs more than the rest of the work. It answers
// the plain cases exactly as git does and leaves the others to git.
type refFiles struct {
	common string // the repository; empty: nothing is answered
}

// plain reports that refs are files whose names are exact.
func (f refFiles) plain() bool {
	if f.common == "" {
		return false
	}
	if _, err := os.Lstat(filepath.Join(f.common, "reftable")); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	// On a file system that ignores case, a file that is found need not be the ref that was asked for.
	exact, err := os.Lstat(filepath.Join(f.common, "HEAD"))
	other, errOther := os.Lstat(filepath.Join(f.common, "head"))
	return err == nil && (errOther != nil || !os.SameFile(exact, other))
}

// PlainRefs reports that the refs of the pinned repository are files whose names are exact.
func (g Runner) PlainRefs() bool { return refFiles{g.common}.plain() }

// read reads refs by their full names; a name that ends in a slash means everything below it. ok is false when git has
// to be asked.
func (f refFiles) read(names []string) (refs map[string]string, ok bool) {
	if len(names) == 0 || !f.plain() {
		return nil, false
	}
	refs = map[string]string{}
	var missing []string
	for _, name := range names {
		if !ValidRef(strings.TrimSuffix(name, "/")) {
			return nil, false
		}
		found, known := f.loose(name, refs)
		if !known {
			return nil, false
		}
		if !found {
			missing = append(missing, name)
		}
	}
	// In this order: git packs a ref before it deletes its file.
	return refs, (len(missing) == 0 || f.packed(refs, func(ref string) bool {
		return slices.ContainsFunc(missing, func(name string) bool {
			return ref == name || strings.HasSuffix(name, "/") && strings.HasPrefix(ref, name)
		})
	})) && resolve(refs)
}

// readBut reads all refs but those below a folder of refs.
func (f refFiles) readBut(folder string) (refs map[string]string, ok bool) {
	entries, err := os.ReadDir(filepath.Join(f.common, "refs"))
	if err != nil || !f.plain() {
		return nil, false
	}
	refs = map[string]string{}
	for _, e := range entries {
		name := "refs/" + e.Name()
		if e.IsDir() {
			name += "/"
		}
		switch name {
		case folder:
			continue
		case "refs/bisect/", "refs/worktree/", "refs/rewritten/": // each checkout has its own
			return nil, false
		}
		if _, known := f.loose(name, refs); !known {
			return nil, false
		}
	}
	return refs, f.packed(refs, func(ref string) bool { return !strings.HasPrefix(ref, folder) }) && resolve(refs)
}

// symbolic begins the file of a ref that stands for another.
const symbolic = "ref: "

// resolve follows the symbolic refs. It is false when one leads to a ref that was not read.
func resolve(refs map[string]string) bool {
	for name, at := range refs {
		if target, is := strings.CutPrefix(at, symbolic); is {
			if !IsObject(refs[target]) {
				return false
			}
			refs[name] = refs[target]
		}
	}
	return true
}

// loose adds the ref with this name if it has a file of its own; of a folder, all refs below it that have one. found: the file of
// packed refs need not be read for it. known: what the files say is sure, else git has to be asked.
func (f refFiles) loose(name string, refs map[string]string) (found, known bool) {
	path := filepath.Join(f.common, filepath.FromSlash(name))
	if strings.HasSuffix(name, "/") {
		entries, err := os.ReadDir(path)
		for _, e := range entries {
			below := name + e.Name()
			if strings.HasPrefix(e.Name(), ".") || strings.HasSuffix(below, ".lock") {
				continue
			}
			if !ValidRef(below) {
				return false, false
			}
			if e.IsDir() {
				below += "/"
			}
			if _, known := f.loose(below, refs); !known {
				return false, false
			}
		}
		return false, err == nil || absent(err)
	}
	content, _, err := ReadRegular(path)
	if err != nil {
		info, errStat := os.Lstat(path)
		return false, absent(err) || errStat == nil && info.IsDir()
	}
	at, whole := strings.CutSuffix(string(content), "\n")
	refs[name] = at
	return true, whole && (IsObject(at) || strings.HasPrefix(at, symbolic))
}

func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// packed adds the wanted refs that are in packed-refs, and no file of their own has moved.
func (f refFiles) packed(refs map[string]string, wanted func(ref string) bool) (known bool) {
	path := filepath.Join(f.common, "packed-refs")
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil || info.Size() > packedLimit {
		return false
	}
	content, _, err := ReadRegular(path)
	for line := range strings.Lines(string(content)) {
		if line[0] == '#' || line[0] == '^' { // what is said of the file, or of the tag before
			continue
		}
		sha, ref, _ := strings.Cut(line, " ")
		if ref, whole := strings.CutSuffix(ref, "\n"); !whole || !IsObject(sha) || !ValidRef(ref) {
			return false
		} else if refs[ref] == "" && wanted(ref) {
			refs[ref] = sha
		}
	}
	return err == nil
}

// head is the full name of the branch that the HEAD of a git directory is on.
func (f refFiles) head(gitDir string) (ref string, ok bool) {
	if !f.plain() {
		return "", false
	}
	content, _, err := ReadRegular(filepath.Join(gitDir, "HEAD"))
	if err != nil {
		return "", false
	}
	ref, isRef := strings.CutPrefix(string(content), symbolic)
	ref, whole := strings.CutSuffix(ref, "\n")
	return ref, isRef && whole && strings.HasPrefix(ref, Heads) && ValidRef(ref)
}

// ReadRegular reads a file that may have been replaced by a link or a pipe.
func ReadRegular(path string) ([]byte, fs.FileInfo, error) { return readRegular(path, unix.O_NOFOLLOW) }

// ReadLinked reads a file, or the file that a link leads to. It does not wait at a pipe.
func ReadLinked(path string) ([]byte, error) {
	content, _, err := readRegular(path, 0)
	return content, err
}

func readRegular(path string, flag int) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|flag, 0)
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

// CheckRegular refuses files that are, or lead to, a pipe or the like: git would wait there for ever. What does not exist
// is fine, and so is the null device.
func CheckRegular(paths ...string) error {
	null, _ := os.Stat(os.DevNull) // without it nothing is the same
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && !info.Mode().IsRegular() && !info.IsDir() && !os.SameFile(info, null) {
			return fmt.Errorf("%s is not a regular file", path)
		}
	}
	return nil
}
