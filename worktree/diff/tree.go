package diff

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Links returns the symbolic links of a commit, by path, with their targets as written. An absolute target inside the
// checkout at top is returned relative to top, with a leading slash. Other absolute targets are left out.
func Links(ctx context.Context, g git.Runner, commit, top string) (map[string]string, error) {
	out, err := g.Files(ctx, commit)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	at := map[string][]string{} // paths by blob
	for entry := range strings.SplitSeq(out, "\x00") {
		meta, name, _ := strings.Cut(entry, "\t")
		if fields := strings.Fields(meta); len(fields) == 3 && fields[0] == "120000" {
			at[fields[2]] = append(at[fields[2]], name)
		}
	}
	if len(at) == 0 {
		return nil, nil
	}
	contents, err := g.Objects(ctx, "blob", slices.Collect(maps.Keys(at)))
	if err != nil {
		return nil, fmt.Errorf("read links: %w", err)
	}
	links := map[string]string{}
	for blob, names := range at {
		for _, name := range names {
			target := contents[blob]
			if path.IsAbs(target) {
				rest, inside := strings.CutPrefix(target+"/", path.Clean(top)+"/")
				if !inside {
					continue
				}
				target = "/" + rest
			}
			links[name] = target
		}
	}
	return links, nil
}

// Gitlinks lists the paths at which base..tip adds a nested repository that no .gitmodules names: git has recorded its
// commit, but none of its files.
func Gitlinks(ctx context.Context, g git.Runner, base, tip string) ([]string, error) {
	files, err := filesOf(ctx, g, base, tip, "--no-renames")
	if err != nil {
		return nil, fmt.Errorf("look for nested repositories: %w", err)
	}
	var links []string
	for _, f := range files {
		if f.New.Mode == Gitlink {
			links = append(links, f.Path)
		}
	}
	if len(links) == 0 {
		return nil, nil
	}
	named, err := submodules(ctx, g, tip)
	return slices.DeleteFunc(links, func(path string) bool { return named[path] }), err
}

// submodules returns the paths that the commit's .gitmodules names; none if that file is missing or unreadable.
func submodules(ctx context.Context, g git.Runner, commit string) (map[string]bool, error) {
	here, err := g.Test(ctx, "cat-file", "-e", commit+":.gitmodules")
	if err != nil || !here {
		return nil, ctx.Err() // the file does not exist
	}
	out, err := g.Output(ctx, "config", "--blob", commit+":.gitmodules", "-z", "--get-regexp", `^submodule\..*\.path$`)
	if err != nil {
		return nil, ctx.Err() // the file cannot be read
	}
	named := map[string]bool{}
	for record := range strings.SplitSeq(out, "\x00") {
		if _, value, ok := strings.Cut(record, "\n"); ok {
			named[value] = true
		}
	}
	return named, nil
}

// Same reports whether two commits have the same files.
func Same(ctx context.Context, g git.Runner, a, b string) (bool, error) {
	return g.Test(ctx, "diff-tree", "--quiet", "-r", "--no-ext-diff", "--no-textconv", "--end-of-options", a, b, "--")
}

// LinkCache caches the links of the last commit. It is safe for concurrent use.
type LinkCache struct {
	mu     sync.Mutex
	commit string            // guarded by mu; the commit
	links  map[string]string // guarded by mu; the map never changes
}

// Links returns [Links] of the commit. The caller must not change the map.
func (c *LinkCache) Links(ctx context.Context, g git.Runner, commit, top string) (map[string]string, error) {
	c.mu.Lock()
	last, links := c.commit, c.links
	c.mu.Unlock()
	if last == commit {
		return links, nil
	}
	links, err := Links(ctx, g, commit, top)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commit, c.links = commit, links
	return links, nil
}
