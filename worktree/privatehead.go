package worktree

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// How much of an agent's files is read: a HEAD or a ref is one line, packed refs are many.
const (
	refLimit        = 4 << 10
	packedRefsLimit = 16 << 20
	logLimit        = 1 << 20
)

// privateHead is where HEAD of a private repository says that it is.
type privateHead struct {
	// commits to try, the first being HEAD's own. The others are for a HEAD that leads nowhere: what its log says, the
	// newest first, and the branch.
	commits []string
	onRef   string // the ref HEAD is on; empty when detached
	midway  bool   // a rebase, merge or the like has not ended
}

// readHead reads HEAD and refs of a private repository as the data that they are. Nothing in them is believed: a name
// of a commit only says what to look for.
func readHead(root *os.Root, branch string) privateHead {
	var h privateHead
	packed := readPacked(root)
	head := readLine(root, "HEAD")
	if ref, ok := strings.CutPrefix(head, "ref: "); ok && validRef(ref) {
		h.onRef, head = ref, resolveRef(root, packed, ref)
	}
	if isObjectName(head) {
		h.commits = append(h.commits, head)
	}
	h.commits = append(h.commits, readLog(root)...)
	if commit := resolveRef(root, packed, branchRef(branch)); commit != "" {
		h.commits = append(h.commits, commit)
	}
	for _, name := range operations() {
		if _, err := root.Lstat(name); err == nil {
			h.midway = true
		}
	}
	return h
}

// resolveRef follows a ref to its commit; empty when it leads to none.
func resolveRef(root *os.Root, packed map[string]string, ref string) string {
	for range 5 {
		line := readLine(root, filepath.FromSlash(ref))
		next, symbolic := strings.CutPrefix(line, "ref: ")
		switch {
		case symbolic && validRef(next) && strings.HasPrefix(next, "refs/"):
			ref = next
		case isObjectName(line):
			return line
		default:
			return packed[ref]
		}
	}
	return ""
}

// readPacked reads packed-refs; a line it does not know is none of ours.
func readPacked(root *os.Root) map[string]string {
	content, err := readWithin(root, "packed-refs", packedRefsLimit)
	if err != nil {
		return nil
	}
	return parsePacked(string(content))
}

func parsePacked(content string) map[string]string {
	refs := map[string]string{}
	for line := range strings.Lines(content) {
		commit, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if isObjectName(commit) && validRef(ref) {
			refs[ref] = commit
		}
	}
	return refs
}

// readLog gives the last commits that HEAD was at, the newest first.
func readLog(root *os.Root) []string {
	content, err := readWithin(root, "logs/HEAD", logLimit)
	if err != nil {
		return nil
	}
	return parseHeadLog(string(content))
}

func parseHeadLog(content string) []string {
	var commits []string
	lines := strings.Split(content, "\n")
	for _, line := range slices.Backward(lines) {
		fields := strings.SplitN(line, " ", 3)
		if len(fields) == 3 && isObjectName(fields[1]) && strings.Trim(fields[1], "0") != "" && !slices.Contains(commits, fields[1]) {
			commits = append(commits, fields[1])
		}
		if len(commits) == 10 {
			break
		}
	}
	return commits
}

// readLine reads a file of one line; empty when there is no such thing.
func readLine(root *os.Root, name string) string {
	content, err := readWithin(root, name, refLimit)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(content), "\n")
	return strings.TrimSpace(line)
}

// openWithin opens a regular file that an agent made. No link leads out of root, and a pipe or device is not waited for.
func openWithin(root *os.Root, name string) (*os.File, error) {
	if info, err := root.Lstat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", printable(name))
	}
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", printable(name))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// readWithin reads such a file, if it is no longer than limit.
func readWithin(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := openWithin(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%s is longer than %d bytes", printable(name), limit)
	}
	return content, err
}
