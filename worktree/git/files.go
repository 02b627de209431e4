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

	"github.com/ralph-pool/ralph/worktree/git/internal/seen"
)

// packedLimit is the size from which packed-refs is left to git, which searches a large file faster.
const packedLimit = 1 << 20

// refFiles reads refs from the repository's files, because starting a process would take most of the time. In plain cases
// its answer is exactly git's. It leaves other cases to git.
type refFiles struct {
	common string      // common git directory of the repository; empty: every case is left to git
	seen   *seen.Files // files read earlier; nil: each is read
}

// hasPlainFiles reports whether refs are files with exact names.
func (f refFiles) hasPlainFiles() bool {
	if f.common == "" {
		return false
	}
	if _, err := os.Lstat(filepath.Join(f.common, "reftable")); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	// If the file system ignores case, a file found under a name may be another ref.
	exact, err := os.Lstat(filepath.Join(f.common, "HEAD"))
	other, errOther := os.Lstat(filepath.Join(f.common, "head"))
	return err == nil && (errOther != nil || !os.SameFile(exact, other))
}

// PlainRefs reports whether the pinned repository stores refs as files with exact names.
func (g Runner) PlainRefs() bool { return refFiles{common: g.common}.hasPlainFiles() }

// read reads refs by their full names; a name with a slash at the end stands for all refs below it. ok is false if git has
// to be asked.
func (f refFiles) read(names []string) (refs map[string]string, ok bool) {
	if len(names) == 0 || !f.hasPlainFiles() {
		return nil, false
	}
	refs = map[string]string{}
	var missing []string
	for _, name := range names {
		if !ValidRef(strings.TrimSuffix(name, "/")) {
			return nil, false
		}
		found, known := f.addLoose(name, refs)
		if !known {
			return nil, false
		}
		if !found {
			missing = append(missing, name)
		}
	}
	// Read packed refs last: git packs a ref before it deletes the ref's file.
	return refs, (len(missing) == 0 || f.addPacked(refs, func(ref string) bool {
		return slices.ContainsFunc(missing, func(name string) bool {
			return ref == name || strings.HasSuffix(name, "/") && strings.HasPrefix(ref, name)
		})
	})) && resolveSymbolic(refs)
}

// readExcept reads all refs except those below a folder of refs.
func (f refFiles) readExcept(folder string) (refs map[string]string, ok bool) {
	entries, err := os.ReadDir(filepath.Join(f.common, "refs"))
	if err != nil || !f.hasPlainFiles() {
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
		case "refs/bisect/", "refs/worktree/", "refs/rewritten/": // each checkout has its own refs of these
			return nil, false
		}
		if _, known := f.addLoose(name, refs); !known {
			return nil, false
		}
	}
	return refs, f.addPacked(refs, func(ref string) bool { return !strings.HasPrefix(ref, folder) }) && resolveSymbolic(refs)
}

// symbolicPrefix is the prefix in the file of a symbolic ref.
const symbolicPrefix = "ref: "

// resolveSymbolic replaces the symbolic refs by their targets. It returns false if a target was not read.
func resolveSymbolic(refs map[string]string) bool {
	for name, at := range refs {
		if target, is := strings.CutPrefix(at, symbolicPrefix); is {
			if !IsObject(refs[target]) {
				return false
			}
			refs[name] = refs[target]
		}
	}
	return true
}

// addLoose adds the named ref if it has its own file; for a folder, it adds all refs with files below it. found says that
// packed-refs need not be read for it. known is false if git has to be asked.
func (f refFiles) addLoose(name string, refs map[string]string) (found, known bool) {
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
			if _, known := f.addLoose(below, refs); !known {
				return false, false
			}
		}
		return false, err == nil || isAbsent(err)
	}
	content, err := f.seen.Read(path, ReadRegular)
	if err != nil {
		info, errStat := os.Lstat(path)
		return false, isAbsent(err) || errStat == nil && info.IsDir()
	}
	at, whole := strings.CutSuffix(content, "\n")
	refs[name] = at
	return true, whole && (IsObject(at) || strings.HasPrefix(at, symbolicPrefix))
}

func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// addPacked adds the wanted refs from packed-refs that have no file of their own.
func (f refFiles) addPacked(refs map[string]string, wanted func(ref string) bool) (known bool) {
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
		if line[0] == '#' || line[0] == '^' { // a header, or the commit of the tag in the line before
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

// readHead returns the full name of the branch that HEAD of a git directory points to.
func (f refFiles) readHead(gitDir string) (ref string, ok bool) {
	if !f.hasPlainFiles() {
		return "", false
	}
	content, _, err := ReadRegular(filepath.Join(gitDir, "HEAD"))
	if err != nil {
		return "", false
	}
	ref, isRef := strings.CutPrefix(string(content), symbolicPrefix)
	ref, whole := strings.CutSuffix(ref, "\n")
	return ref, isRef && whole && strings.HasPrefix(ref, Heads) && ValidRef(ref)
}

// ReadRegular reads a file that somebody may have replaced by a link or a pipe. It follows no link and does not block.
func ReadRegular(path string) ([]byte, fs.FileInfo, error) { return readRegular(path, unix.O_NOFOLLOW) }

// ReadLinked reads a file and follows links. It does not block on a pipe.
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

// CheckRegular refuses paths of pipes and the like, on which git would block. Missing files and /dev/null are fine.
func CheckRegular(paths ...string) error {
	null, _ := os.Stat(os.DevNull) // if it fails, SameFile is false
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && !info.Mode().IsRegular() && !info.IsDir() && !os.SameFile(info, null) {
			return fmt.Errorf("%s is not a regular file", path)
		}
	}
	return nil
}
