package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/internal/proc"
)

// Changes is what the commits between two points bring: every commit counts, not only the difference in the end.
type Changes struct {
	// Paths are all paths that any of the commits adds, changes or removes; both names of a rename.
	Paths []string
	// Objects are the commits as git stores them, headers and message, by commit.
	Objects map[string]string
}

// Changes reads what the commits base..tip change. added is called with every line that any of them adds; line is only
// valid during the call. Contents are data: no filter, text conversion or external diff is run.
func (r *Repo) Changes(ctx context.Context, base, tip string, added func(path string, line []byte)) (Changes, error) {
	span, err := r.readSpan(ctx, base, tip)
	if err != nil || len(span.commits) == 0 {
		return Changes{}, err
	}
	var commits []string
	for _, c := range span.commits {
		commits = append(commits, c.SHA)
	}
	var c Changes
	if c.Objects, err = r.git.readCommits(ctx, commits); err != nil {
		return Changes{}, fmt.Errorf("read commits: %w", err)
	}
	plain := []string{"log", "--format=", "--no-renames", "-m", "--no-color", "--no-ext-diff", "--no-textconv", "--no-show-signature"}
	names, err := r.git.out(ctx, append(plain, "-z", "--name-only", "--end-of-options", base+".."+tip, "--")...)
	if err != nil {
		return Changes{}, fmt.Errorf("list changed paths: %w", err)
	}
	seen := map[string]bool{}
	for name := range strings.SplitSeq(names, "\x00") {
		if name = strings.TrimPrefix(name, "\n"); name != "" && !seen[name] {
			seen[name] = true
			c.Paths = append(c.Paths, name)
		}
	}
	patch := patchReader{added: added}
	err = r.git.stream(ctx, patch.line, append(plain, "--patch", "--unified=0", "--text", "--src-prefix=a/", "--dst-prefix=b/",
		"--submodule=short", "--end-of-options", base+".."+tip, "--")...)
	if err != nil {
		return Changes{}, fmt.Errorf("read changed lines: %w", err)
	}
	return c, nil
}

// patchReader finds the added lines of a patch without context lines.
type patchReader struct {
	added func(path string, line []byte)
	path  string
	hunk  bool // between a hunk's head and the next file's
}

func (p *patchReader) line(line []byte) {
	switch {
	case bytes.HasPrefix(line, []byte("diff --git ")):
		p.hunk = false
	case bytes.HasPrefix(line, []byte("@@ ")):
		p.hunk = true
	case !p.hunk && bytes.HasPrefix(line, []byte("+++ ")):
		p.path = strings.TrimPrefix(strings.TrimSuffix(string(line[4:]), "\t"), "b/")
	case p.hunk && len(line) > 0 && line[0] == '+':
		p.added(p.path, line[1:])
	}
}

// stream runs one command and hands over its output line by line.
func (g git) stream(ctx context.Context, line func([]byte), args ...string) error {
	lines := proc.NewLines(line)
	if err := g.pipe(ctx, strings.NewReader(""), lines, args...); err != nil {
		return err
	}
	if lines.Cut() > 0 {
		return errors.New("a line is too long to be looked at")
	}
	return lines.Close()
}
