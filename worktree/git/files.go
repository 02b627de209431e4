package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
	return refs, len(missing) == 0 || f.nonePacked(missing)
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
	sha, whole := strings.CutSuffix(string(content), "\n")
	refs[name] = sha
	return true, whole && IsObject(sha)
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
	packed, _, err := ReadRegular(path)
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

// head is the full name of the branch that the HEAD of a git directory is on.
func (f refFiles) head(gitDir string) (ref string, ok bool) {
	if !f.plain() {
		return "", false
	}
	content, _, err := ReadRegular(filepath.Join(gitDir, "HEAD"))
	if err != nil {
		return "", false
	}
	ref, isRef := strings.CutPrefix(string(content), "ref: ")
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
