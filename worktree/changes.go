package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/proc"
)

// Changes is what the commits of a branch bring: every commit counts, not only the difference in the end.
type Changes struct {
	// Paths are all paths that any of the commits adds, changes or removes; both names of a rename. What a merge takes
	// over from one of its parents as it is there is not among them, unless it undoes what a base has.
	Paths []string
	// Objects are the commits as git stores them, headers and message, by commit.
	Objects map[string]string
}

// Changes reads what the commits change that tip has and none of the bases. added is called with every line that any of
// them adds; line is only valid during the call. Contents are data: no filter, text conversion or external diff is run.
func (r *Repo) Changes(ctx context.Context, bases []string, tip string, added func(path string, line []byte)) (Changes, error) {
	c := changes{git: r.git.with(noCommitGraph), bases: bases, tip: tip, seen: map[string]bool{}, added: added}
	span, err := r.readSpan(ctx, bases[0], tip, bases[1:]...)
	if err != nil || len(span.commits) == 0 {
		return Changes{}, err
	}
	var commits, merges []string
	for _, commit := range span.commits {
		commits = append(commits, commit.SHA)
		if len(span.parents[commit.SHA]) > 1 {
			merges = append(merges, commit.SHA)
		}
	}
	objects, err := r.git.readCommits(ctx, commits)
	if err != nil {
		return Changes{}, fmt.Errorf("read commits: %w", err)
	}
	if err := span.whole(objects); err != nil {
		return Changes{}, err
	}
	if err := c.ofCommits(ctx); err != nil {
		return Changes{}, err
	}
	for _, merge := range merges {
		if err := c.ofMerge(ctx, merge); err != nil {
			return Changes{}, err
		}
	}
	if len(merges) > 0 {
		if err := c.undone(ctx); err != nil {
			return Changes{}, err
		}
	}
	return Changes{Paths: c.paths, Objects: objects}, nil
}

// noCommitGraph has git read the trees from the commits themselves: whoever can write the graph can put others into it.
const noCommitGraph = "GIT_CONFIG_PARAMETERS='core.commitGraph=false'"

// whole makes sure that git has taken the commits for what they say: a shallow file, or the graph, can give them other
// parents, and what they hide would be looked at by nobody.
func (s span) whole(objects map[string]string) error {
	for _, c := range s.commits {
		links := commitLinks(objects[c.SHA]) // the tree, and the parents
		if len(links) == 0 || !slices.Equal(links[1:], s.parents[c.SHA]) {
			return fmt.Errorf("git takes commit %s for one with other parents than it has; the files shallow and objects/info/commit-graph in the git directory can do that, such as after: git fetch --depth", short(c.SHA))
		}
	}
	return nil
}

// changes collects them.
type changes struct {
	git   git
	bases []string
	tip   string
	seen  map[string]bool
	paths []string
	added func(path string, line []byte)
}

// inertDiff are the options by which a diff shows what is there and runs nothing.
func inertDiff() []string {
	return []string{"--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none"}
}

// asPatch are the options by which a patch has all lines, and no others.
func asPatch() []string {
	return []string{"--patch", "--unified=0", "--text", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short"}
}

// ofCommits reads what the commits with one parent change, or with none.
func (c *changes) ofCommits(ctx context.Context) error {
	plain := append([]string{"log", "--format=", "--no-merges", "--root", "--no-show-signature"}, inertDiff()...)
	commits := []string{"--end-of-options", c.tip}
	for _, base := range c.bases {
		commits = append(commits, "^"+base)
	}
	commits = append(commits, "--")
	names, err := c.git.out(ctx, slices.Concat(plain, []string{"-z", "--name-only"}, commits)...)
	if err != nil {
		return fmt.Errorf("list changed paths: %w", err)
	}
	c.take(names)
	if err := c.lines(ctx, slices.Concat(plain, asPatch(), commits)...); err != nil {
		return fmt.Errorf("read changed lines: %w", err)
	}
	return nil
}

// ofMerge reads what a merge has that none of its parents has: what is a parent's is looked at there, or is a base's.
func (c *changes) ofMerge(ctx context.Context, merge string) error {
	names, err := c.git.out(ctx, slices.Concat([]string{"diff-tree", "-r", "-c", "-z", "--name-only", "--no-commit-id"},
		inertDiff(), []string{"--end-of-options", merge, "--"})...)
	if err != nil {
		return fmt.Errorf("list what the merge %s changes: %w", short(merge), err)
	}
	c.take(names)
	paths := strings.Split(strings.TrimSuffix(names, "\x00"), "\x00")
	for len(paths) > 0 && paths[0] != "" {
		some := paths[:min(len(paths), pathsAtOnce)]
		paths = paths[len(some):]
		// A line that is new against all parents is new against the first.
		err := c.lines(ctx, slices.Concat([]string{"diff-tree", "-r"}, inertDiff(), asPatch(),
			[]string{"--end-of-options", merge + "^1", merge, "--"}, some)...)
		if err != nil {
			return fmt.Errorf("read what the merge %s changes: %w", short(merge), err)
		}
	}
	return nil
}

// pathsAtOnce is how many paths one command is given: all of them, of 4096 bytes at most, have to fit on a command line.
const pathsAtOnce = 100

// undone reads in what the tip differs from the bases that it contains: a merge can be with a base, and have none of its
// changes.
func (c *changes) undone(ctx context.Context) error {
	out, err := c.git.out(ctx, append([]string{"merge-base", "--all", "--end-of-options", c.tip}, c.bases...)...)
	if failed, ok := errors.AsType[*GitError](err); ok && failed.ExitCode == 1 {
		out, err = strings.Join(c.bases, "\n"), nil // nothing is common to them
	}
	if err != nil {
		return fmt.Errorf("look for the base of %s: %w", short(c.tip), err)
	}
	for _, base := range strings.Fields(out) {
		names, err := c.git.out(ctx, slices.Concat([]string{"diff-tree", "-r", "-z", "--name-only"}, inertDiff(),
			[]string{"--end-of-options", base, c.tip, "--"})...)
		if err != nil {
			return fmt.Errorf("list changed paths: %w", err)
		}
		c.take(names)
	}
	return nil
}

// take adds paths that git has listed.
func (c *changes) take(names string) {
	for name := range strings.SplitSeq(names, "\x00") {
		if name = strings.TrimPrefix(name, "\n"); name != "" && !c.seen[name] {
			c.seen[name] = true
			c.paths = append(c.paths, name)
		}
	}
}

// lines hands over the added lines of a patch.
func (c *changes) lines(ctx context.Context, args ...string) error {
	patch := patchReader{added: c.added}
	return c.git.stream(ctx, patch.line, args...)
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
	lines := proc.NewExactLines(line)
	if err := g.pipe(ctx, strings.NewReader(""), lines, args...); err != nil {
		return err
	}
	if lines.Cut() > 0 {
		return errors.New("a line is too long to be looked at")
	}
	return lines.Close()
}
