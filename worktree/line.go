package worktree

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
)

const (
	lineLimit   = 100       // commits of a line that are worth reading one by one
	commitLimit = 256 << 10 // bytes of a commit object
)

// readLine lists base..tip where that is one line of commits, each in a file of its own: what an agent has just
// committed. ok is false for everything else, such as merges and what is packed: then git has to be asked.
func (s objectStore) readLine(base, tip string) (line span, ok bool) {
	if s.sha256 || s.cut() {
		return span{}, false
	}
	line = span{base: base, tip: tip, parents: map[string][]string{}}
	for at := tip; at != base; {
		c, ok := s.readCommit(at)
		if !ok || len(c.parents) != 1 || len(line.commits) == lineLimit {
			return span{}, false
		}
		line.commits = append(line.commits, Commit{SHA: at, Subject: strings.ToValidUTF8(c.subject, "\uFFFD")})
		line.parents[at] = c.parents
		at = c.parents[0]
	}
	slices.Reverse(line.commits)
	return line, true
}

// cut reports that git may take commits for others than what they say: grafts, or the edge of a shallow clone.
func (s objectStore) cut() bool {
	for _, name := range []string{"shallow", filepath.Join("info", "grafts")} {
		if _, err := os.Lstat(filepath.Join(filepath.Dir(s.dir), name)); !absent(err) {
			return true
		}
	}
	return false
}

// looseCommit is what a span needs of a commit.
type looseCommit struct {
	parents []string
	subject string
}

// readCommit reads a loose commit and holds its content against its name.
func (s objectStore) readCommit(name string) (looseCommit, bool) {
	content, ok := s.readRaw(name)
	if !ok {
		return looseCommit{}, false
	}
	return parseCommit(content)
}

// readRaw reads the content of a loose commit.
func (s objectStore) readRaw(name string) ([]byte, bool) {
	if !isObjectName(name) {
		return nil, false
	}
	f, err := os.Open(filepath.Join(s.dir, name[:2], name[2:]))
	if err != nil {
		return nil, false
	}
	defer f.Close()
	r, err := objfile.NewReader(f)
	if err != nil {
		return nil, false
	}
	defer r.Close()
	kind, size, err := r.Header()
	if err != nil || kind != plumbing.CommitObject || size < 0 || size > commitLimit {
		return nil, false
	}
	content, err := io.ReadAll(io.LimitReader(r, size+1))
	if err != nil || int64(len(content)) != size || r.Hash().String() != name {
		return nil, false
	}
	return content, true
}

// parseCommit decodes a commit object. What git would have to convert, or shows only in part, is left to it.
func parseCommit(content []byte) (c looseCommit, ok bool) {
	header, message, ok := bytes.Cut(content, []byte("\n\n"))
	if !ok || bytes.IndexByte(content, 0) >= 0 {
		return c, false
	}
	lines := strings.Split(string(header), "\n")
	if tree, ok := strings.CutPrefix(lines[0], "tree "); !ok || !isObjectName(tree) {
		return c, false
	}
	rest := lines[1:]
	for ; len(rest) > 0 && strings.HasPrefix(rest[0], "parent "); rest = rest[1:] {
		parent := strings.TrimPrefix(rest[0], "parent ")
		if !isObjectName(parent) {
			return c, false
		}
		c.parents = append(c.parents, parent)
	}
	if len(rest) < 2 || !strings.HasPrefix(rest[0], "author ") || !strings.HasPrefix(rest[1], "committer ") {
		return c, false
	}
	for _, line := range rest[2:] {
		if strings.HasPrefix(line, "encoding ") || strings.HasPrefix(line, "parent ") {
			return c, false
		}
	}
	c.subject = subject(string(message))
	return c, true
}

// subject is the first paragraph of a message in one line, as git's %s.
func subject(message string) string {
	var parts []string
	for line := range strings.SplitSeq(message, "\n") {
		line = strings.TrimRight(line, " \t\r\n")
		if line != "" {
			parts = append(parts, line)
		} else if len(parts) > 0 {
			break
		}
	}
	return strings.Join(parts, " ")
}
