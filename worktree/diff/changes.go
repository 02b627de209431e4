package diff

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Changes lists the changes made by the commits of a range. It includes changes that a later commit of the range undoes.
type Changes struct {
	// Paths are all paths that a commit adds, changes or removes, with both names of a rename. A path that a merge takes
	// unchanged from one of its parents is not included, unless that undoes a change of a base.
	Paths []string
	// Links are those of Paths that are or were a symbolic link or a submodule: a path below such a link is in another
	// place.
	Links []string
	// Objects are the raw commit objects, headers and message, by commit.
	Objects map[string]string
}

// Range is the set of commits that are in Tip and in none of the Bases.
type Range struct {
	Bases   []string // at least one
	Tip     string
	Commits []string
	Parents map[string][]string // parents of each of Commits, as git reports them
}

// Read reads the changes made by the commits of the range. It calls added with every added line; line is valid only during
// the call. File contents are treated as data: no filter, text conversion or external diff runs. It fails with ErrTooMuch
// if git ran out of memory or time.
func Read(ctx context.Context, g git.Runner, r Range, added func(path string, line []byte)) (Changes, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readTime, fmt.Errorf("%w: git did not end within %s", ErrTooMuch, readTime))
	defer cancel()
	return readLimited(ctx, g.WithMemory(git.AgentMemory), r, added)
}

// Limits for reading the changes of one range. A file of line breaks makes git use forty times its size.
const (
	readTime     = 10 * time.Minute
	maxPathBytes = 1 << 30 // bytes of path lists
)

// outOfMemory matches git's messages at its memory limit.
var outOfMemory = pattern.Lazy(`(?i)out of memory|malloc failed|cannot allocate memory`)

// readLimited maps a git that failed at the runner's memory limit to ErrTooMuch.
func readLimited(ctx context.Context, g git.Runner, r Range, added func(path string, line []byte)) (Changes, error) {
	c, err := read(ctx, g, r, added)
	if failed, ok := errors.AsType[*git.Error](err); ok && outOfMemory().MatchString(failed.Stderr) {
		err = fmt.Errorf("%w: %w", ErrTooMuch, err)
	}
	return c, err
}

func read(ctx context.Context, g git.Runner, r Range, added func(path string, line []byte)) (Changes, error) {
	if len(r.Commits) == 0 {
		return Changes{}, nil
	}
	c := changes{git: g.With(noCommitGraph), commits: r, seen: map[string]bool{}, links: map[string]bool{}, added: added}
	objects, err := g.Objects(ctx, "commit", r.Commits)
	if err != nil {
		return Changes{}, fmt.Errorf("read commits: %w", err)
	}
	if err := r.check(objects); err != nil {
		return Changes{}, err
	}
	if err := c.readCommits(ctx); err != nil {
		return Changes{}, err
	}
	merges := slices.DeleteFunc(slices.Clone(r.Commits), func(commit string) bool { return len(r.Parents[commit]) < 2 })
	if len(merges) > 0 {
		if err := c.readMerges(ctx, merges); err != nil {
			return Changes{}, err
		}
		if err := c.readDropped(ctx); err != nil {
			return Changes{}, err
		}
	}
	return Changes{Paths: c.paths, Links: slices.Sorted(maps.Keys(c.links)), Objects: objects}, nil
}

// noCommitGraph makes git read trees and parents from the commits themselves: a commit graph could name others.
const noCommitGraph = "GIT_CONFIG_PARAMETERS='core.commitGraph=false'"

// check makes sure that git sees the parents that each commit names. A shallow file or a commit graph can give a commit
// other parents, and the commits hidden by that would not be checked.
func (r Range) check(objects map[string]string) error {
	for _, commit := range r.Commits {
		var parents []string
		header, _, _ := strings.Cut(objects[commit], "\n\n")
		for line := range strings.Lines(header) {
			if parent, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "parent "); ok {
				parents = append(parents, parent)
			}
		}
		if header == "" || !slices.Equal(parents, r.Parents[commit]) {
			return fmt.Errorf("git does not see the real parents of commit %s; "+
				"the file shallow or objects/info/commit-graph in the "+
				"git directory can be the cause, for example after: git fetch --depth", git.Short(commit))
		}
	}
	return nil
}

// changes collects the data of Changes.
type changes struct {
	git     git.Runner
	commits Range
	seen    map[string]bool
	paths   []string
	size    int // bytes of all paths
	links   map[string]bool
	added   func(path string, line []byte)
}

// diffOptions returns the options of a diff that shows the stored contents and runs no program.
func diffOptions() []string {
	return []string{"--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none"}
}

// patchOptions returns the options of a patch with all changed lines and no others.
func patchOptions() []string {
	return []string{"--patch", "--unified=0", "--text", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short"}
}

// endOfAnswer ends a list of commits. Git repeats a line that is no commit: that ends the answer. It is longer than the name of
// a commit.
const endOfAnswer = "--------------------------------------------------------------------------------\n"

// readCommits reads the changes of commits with at most one parent: for each, first the paths, then the lines.
func (c *changes) readCommits(ctx context.Context) error {
	args := slices.Concat([]string{"diff-tree", "--stdin", "--always", "-r", "--root"}, diffOptions(), []string{"-z", "--raw"}, patchOptions())
	if err := c.git.Ask(ctx, strings.Join(c.commits.Commits, "\n")+"\n"+endOfAnswer, c.parse, args...); err != nil {
		return fmt.Errorf("read what commits change: %w", err)
	}
	return nil
}

// parse reads the names of the commits, each with its list of paths and its patch. No line of a patch begins like an entry of a
// list, and none is like the next name: git skips commits that it cannot read.
func (c *changes) parse(r *bufio.Reader) error {
	lines := proc.NewExactLines((&patchReader{added: c.added}).line)
	rest := c.commits.Commits
	for atLineStart := true; ; {
		if atLineStart {
			if len(rest) > 0 {
				name := rest[0] + "\x00"
				if next, err := r.Peek(len(name)); err != nil {
					return err
				} else if string(next) == name {
					_, _ = r.Discard(len(name)) // already seen by Peek
					rest = rest[1:]
					continue
				}
			}
			switch next, err := r.Peek(1); {
			case err != nil:
				return err
			case next[0] == ':':
				modes, errModes := r.ReadString(0)
				path, err := r.ReadString(0)
				if err := cmp.Or(errModes, err); err != nil {
					return fmt.Errorf("the list of paths is cut: %w", err)
				}
				if c.addPaths(modes + path); c.size > maxPathBytes {
					return ErrTooMuch
				}
				continue
			case next[0] == 0:
				_, _ = r.Discard(1) // already seen by Peek
				continue
			}
		}
		part, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if atLineStart && string(part) == endOfAnswer {
			if len(rest) > 0 {
				return fmt.Errorf("git does not show commit %s", git.Short(rest[0]))
			}
			return c.close(lines)
		}
		atLineStart = err == nil
		_, _ = lines.Write(part) // never fails
	}
}

func (c *changes) close(lines *proc.Lines) error {
	if lines.Cut() > 0 {
		return errors.New("a line of the output is too long")
	}
	return lines.Close()
}

// readMerges reads the changes that a merge has compared with all of its parents. Its other changes belong to a parent or to
// a base.
func (c *changes) readMerges(ctx context.Context, merges []string) error {
	// One process lists all merges: there can be many, and few of them change anything.
	list, err := c.list(ctx, strings.Join(merges, "\n")+"\n",
		slices.Concat([]string{"diff-tree", "--stdin", "-r", "-c", "-z", "--raw"}, diffOptions())...)
	if err != nil {
		return fmt.Errorf("list what merges change: %w", err)
	}
	for list != "" {
		merge, rest, _ := strings.Cut(list, "\x00")
		if !git.IsObject(merge) {
			return fmt.Errorf("git diff-tree: cannot read %q", git.Printable(merge))
		}
		var paths []string
		paths, list = c.addPaths(rest)
		if err := c.readMergeLines(ctx, merge, paths); err != nil {
			return fmt.Errorf("read what the merge %s changes: %w", git.Short(merge), err)
		}
	}
	return nil
}

// readMergeLines reads the added lines in the paths that the merge itself changes.
func (c *changes) readMergeLines(ctx context.Context, merge string, paths []string) error {
	for len(paths) > 0 {
		some := paths[:min(len(paths), maxPathsPerCommand)]
		paths = paths[len(some):]
		// A line that is new compared with all parents is also new compared with the first.
		err := c.readLines(ctx, slices.Concat([]string{"diff-tree", "-r"}, diffOptions(), patchOptions(),
			[]string{"--end-of-options", merge + "^1", merge, "--"}, some)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// maxPathsPerCommand is the number of paths per command: paths of up to 4,096 bytes each have to fit on one command line.
const maxPathsPerCommand = 100

// readDropped compares the tip with the bases that it contains: a merge with a base can drop the base's changes.
func (c *changes) readDropped(ctx context.Context) error {
	out, err := c.git.Output(ctx, append([]string{"merge-base", "--all", "--end-of-options", c.commits.Tip}, c.commits.Bases...)...)
	if failed, ok := errors.AsType[*git.Error](err); ok && failed.ExitCode == 1 {
		out, err = strings.Join(c.commits.Bases, "\n"), nil // no common ancestor
	}
	if err != nil {
		return fmt.Errorf("look for the base of %s: %w", git.Short(c.commits.Tip), err)
	}
	for _, base := range strings.Fields(out) {
		names, err := c.list(ctx, "", slices.Concat([]string{"diff-tree", "-r", "-z", "--raw"}, diffOptions(),
			[]string{"--end-of-options", base, c.commits.Tip, "--"})...)
		if err != nil {
			return fmt.Errorf("list changed paths: %w", err)
		}
		if _, rest := c.addPaths(names); rest != "" {
			return fmt.Errorf("list changed paths: git: cannot read %q", git.Printable(rest[:min(len(rest), 100)]))
		}
	}
	return nil
}

// list returns the output of a command that lists paths, or ErrTooMuch above maxPathBytes bytes.
func (c *changes) list(ctx context.Context, stdin string, args ...string) (string, error) {
	var out strings.Builder
	err := c.git.Read(ctx, stdin, func(r *bufio.Reader) error {
		n, err := io.Copy(&out, io.LimitReader(r, maxPathBytes))
		if err == nil && n == maxPathBytes {
			err = ErrTooMuch
		}
		return err
	}, args...)
	return out.String(), err
}

// addPaths parses the entries at the beginning of git's --raw output and adds their paths. It returns these paths and the
// rest of the output.
func (c *changes) addPaths(raw string) (paths []string, rest string) {
	for strings.HasPrefix(raw, ":") {
		modes, rest, _ := strings.Cut(raw, "\x00")
		path, rest, _ := strings.Cut(rest, "\x00")
		if isLink(modes) {
			c.links[path] = true
		}
		if paths = append(paths, path); !c.seen[path] {
			c.seen[path] = true
			c.size += len(path)
			c.paths = append(c.paths, path)
		}
		raw = rest
	}
	return paths, raw
}

// isLink reports whether one side is a symbolic link or a submodule. modes begins with one ":" per old side, followed by
// the modes.
func isLink(modes string) bool {
	old := len(modes) - len(strings.TrimLeft(modes, ":"))
	sides := strings.Fields(modes[old:])
	return slices.ContainsFunc(sides[:min(old+1, len(sides))], func(mode string) bool { return mode == "120000" || mode == Gitlink })
}

// readLines passes the added lines of a patch to added.
func (c *changes) readLines(ctx context.Context, args ...string) error {
	patch := patchReader{added: c.added}
	return c.git.Lines(ctx, patch.line, args...)
}

// patchReader finds the added lines of a patch without context lines.
type patchReader struct {
	added  func(path string, line []byte)
	path   string
	inHunk bool // inside a hunk, before the next file's header
}

func (p *patchReader) line(line []byte) {
	switch {
	case bytes.HasPrefix(line, []byte("diff --git ")):
		p.inHunk = false
	case bytes.HasPrefix(line, []byte("@@ ")):
		p.inHunk = true
	case !p.inHunk && bytes.HasPrefix(line, []byte("+++ ")):
		p.path = strings.TrimPrefix(strings.TrimSuffix(string(line[4:]), "\t"), "b/")
	case p.inHunk && len(line) > 0 && line[0] == '+':
		p.added(p.path, line[1:])
	}
}
