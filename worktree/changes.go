package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/proc"
)

// Changes is what the commits of a branch bring: every commit counts, not only the difference in the end.
type Changes struct {
	// Paths are all paths that any of the commits adds, changes or removes; both names of a rename. What a merge takes
	// over from one of its parents as it is there is not among them, unless it undoes what a base has.
	Paths []string
	// Links are those of Paths where a symbolic link or a submodule stands, or has stood: with one of a folder's name,
	// whatever is below that name is somewhere else.
	Links []string
	// Objects are the commits as git stores them, headers and message, by commit.
	Objects map[string]string
}

// Changes reads what the commits change that tip has and none of the bases. added is called with every line that any of
// them adds; line is only valid during the call. Contents are data: no filter, text conversion or external diff is run.
func (r *Repo) Changes(ctx context.Context, bases []string, tip string, added func(path string, line []byte)) (Changes, error) {
	c := changes{git: r.git.with(noCommitGraph), bases: bases, tip: tip, seen: map[string]bool{}, links: map[string]bool{}, added: added}
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
	if err := c.ofMerges(ctx, merges); err != nil {
		return Changes{}, err
	}
	if len(merges) > 0 {
		if err := c.undone(ctx); err != nil {
			return Changes{}, err
		}
	}
	return Changes{Paths: c.paths, Links: slices.Sorted(maps.Keys(c.links)), Objects: objects}, nil
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
	links map[string]bool
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
	names, err := c.git.out(ctx, slices.Concat(plain, []string{"-z", "--raw"}, commits)...)
	if err != nil {
		return fmt.Errorf("list changed paths: %w", err)
	}
	if err := c.take(names); err != nil {
		return fmt.Errorf("list changed paths: %w", err)
	}
	if err := c.lines(ctx, slices.Concat(plain, asPatch(), commits)...); err != nil {
		return fmt.Errorf("read changed lines: %w", err)
	}
	return nil
}

// ofMerges reads what merges have that none of their parents has: what is a parent's is looked at there, or is a base's.
func (c *changes) ofMerges(ctx context.Context, merges []string) error {
	if len(merges) == 0 {
		return nil
	}
	// One process lists all of them: they can be many, and hardly one has anything.
	list, err := c.git.run(ctx, strings.Join(merges, "\n")+"\n",
		slices.Concat([]string{"diff-tree", "--stdin", "-r", "-c", "-z", "--raw"}, inertDiff())...)
	if err != nil {
		return fmt.Errorf("list what merges change: %w", err)
	}
	for list != "" {
		merge, rest, _ := strings.Cut(list, "\x00")
		if !isObjectName(merge) {
			return fmt.Errorf("git diff-tree: cannot read %q", printable(merge))
		}
		var paths []string
		paths, list = c.takeSome(rest)
		if err := c.linesOfMerge(ctx, merge, paths); err != nil {
			return fmt.Errorf("read what the merge %s changes: %w", short(merge), err)
		}
	}
	return nil
}

// linesOfMerge reads the lines of a merge's own paths.
func (c *changes) linesOfMerge(ctx context.Context, merge string, paths []string) error {
	for len(paths) > 0 {
		some := paths[:min(len(paths), pathsAtOnce)]
		paths = paths[len(some):]
		// A line that is new against all parents is new against the first.
		err := c.lines(ctx, slices.Concat([]string{"diff-tree", "-r"}, inertDiff(), asPatch(),
			[]string{"--end-of-options", merge + "^1", merge, "--"}, some)...)
		if err != nil {
			return err
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
		names, err := c.git.out(ctx, slices.Concat([]string{"diff-tree", "-r", "-z", "--raw"}, inertDiff(),
			[]string{"--end-of-options", base, c.tip, "--"})...)
		if err == nil {
			err = c.take(names)
		}
		if err != nil {
			return fmt.Errorf("list changed paths: %w", err)
		}
	}
	return nil
}

// take adds paths that git has listed with --raw.
func (c *changes) take(raw string) error {
	for raw = strings.TrimLeft(raw, "\n\x00"); raw != ""; raw = strings.TrimLeft(raw, "\n\x00") { // which stand between commits
		paths, rest := c.takeSome(raw)
		if len(paths) == 0 {
			return fmt.Errorf("git: cannot read %q", printable(raw[:min(len(raw), 100)]))
		}
		raw = rest
	}
	return nil
}

// takeSome adds the paths at the beginning of such a list, and returns them and what comes after.
func (c *changes) takeSome(raw string) (paths []string, rest string) {
	for strings.HasPrefix(raw, ":") {
		modes, rest, _ := strings.Cut(raw, "\x00")
		path, rest, _ := strings.Cut(rest, "\x00")
		if isLink(modes) {
			c.links[path] = true
		}
		if paths = append(paths, path); !c.seen[path] {
			c.seen[path] = true
			c.paths = append(c.paths, path)
		}
		raw = rest
	}
	return paths, raw
}

// isLink reports that a link or a submodule is on one of the sides: ":", once for each old side, then the modes.
func isLink(modes string) bool {
	old := len(modes) - len(strings.TrimLeft(modes, ":"))
	sides := strings.Fields(modes[old:])
	return slices.ContainsFunc(sides[:min(old+1, len(sides))], func(mode string) bool { return mode == "120000" || mode == "160000" })
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
