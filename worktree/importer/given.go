package importer

import (
	"context"
	"fmt"
	"io"

	"github.com/ralph-pool/ralph/worktree/git"
)

// count holds the folders of the pack to the caps. What they name of the given history is counted as well: an agent chose
// much of that in earlier imports, and a guess for it would add up over several imports.
func (q *Quarantine) count(ctx context.Context, c *contents, o Options) error {
	given, err := q.givenTrees(ctx, c, o)
	if err != nil {
		return fmt.Errorf("count the paths: %w", err)
	}
	return counter{trees: c.trees, given: given, caps: o.Caps}.all()
}

// givenTrees reads the folders that the pack names without holding them, and all below those, each once.
func (q *Quarantine) givenTrees(ctx context.Context, c *contents, o Options) (map[string]*tree, error) {
	g := givenTrees{trees: map[string]*tree{}, idSize: 20}
	if o.SHA256 {
		g.idSize = 32
	}
	named := map[string]bool{}
	var level []string
	add := func(t *tree) {
		for _, f := range t.folders {
			id := f.id
			if c.trees[id] == nil && !named[id] {
				named[id] = true
				level = append(level, id)
			}
		}
	}
	for _, t := range c.trees {
		add(t)
	}
	for depth := 0; len(level) > 0; depth++ {
		asked := level
		if depth > o.Caps.Depth { // each level is a process
			return nil, fmt.Errorf("more than %d folders inside each other: %w", o.Caps.Depth, ErrTooBig)
		}
		if len(named) > o.Caps.Objects {
			return nil, fmt.Errorf("more than %d folders: %w", o.Caps.Objects, ErrTooBig)
		}
		if err := q.git.EachObject(ctx, asked, g.keep); err != nil {
			return nil, err
		}
		level = nil
		for _, id := range asked {
			if t := g.trees[id]; t != nil {
				add(t)
			}
		}
	}
	return g.trees, nil
}

// givenTrees are folders of the given history.
type givenTrees struct {
	trees  map[string]*tree
	idSize int
	held   int64 // bytes so far
}

// keep takes one folder. What is missing or no folder is left out: git's check of the pack finds it, and in a partial clone
// folders may be missing further down.
func (g *givenTrees) keep(o git.Object, r io.Reader) error {
	if o.Kind != "tree" {
		return nil
	}
	if g.held += o.Size; g.held > treesLimit {
		return fmt.Errorf("%d bytes of folders so far: %w", g.held, ErrTooBig)
	}
	content := make([]byte, o.Size)
	if _, err := io.ReadFull(r, content); err != nil {
		return err
	}
	t, err := new(contents).parseTree(content, g.idSize)
	if err != nil {
		return err
	}
	g.trees[o.Name] = t
	return nil
}
