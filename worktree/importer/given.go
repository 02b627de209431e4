package importer

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/ralph-pool/ralph/worktree/git"
)

// checkFolders checks the folders of the pack against the caps. It includes the folders of the given history to which they
// refer: an agent made many of those in earlier imports, and an estimate would add up over several imports.
func (q *Quarantine) checkFolders(ctx context.Context, c *contents, o Options) error {
	if err := q.refuseOdd(ctx, c.odd); err != nil {
		return err
	}
	g := givenTrees{known: c.trees, trees: map[string]*tree{}, requested: map[string]bool{}, caps: o.Caps, idSize: 20}
	if o.SHA256 {
		g.idSize = 32
	}
	if err := q.readGiven(ctx, &g); err != nil {
		return fmt.Errorf("count the paths: %w", err)
	}
	return pathCounter{trees: c.trees, given: g.trees, caps: o.Caps, idSize: g.idSize}.countAll()
}

// refuseOdd refuses odd folders that are not in the given history.
func (q *Quarantine) refuseOdd(ctx context.Context, odd map[string]error) error {
	var names []string
	for id := range odd {
		names = append(names, hex.EncodeToString([]byte(id)))
	}
	err := q.git.EachObject(ctx, names, func(o git.Object, _ io.Reader) error {
		delete(odd, rawID(o.Name))
		return nil
	})
	for _, id := range slices.Sorted(maps.Keys(odd)) { // the same in each import
		return odd[id]
	}
	return err
}

// readGiven reads the folders that the pack refers to but does not contain, and all folders below, each once.
func (q *Quarantine) readGiven(ctx context.Context, g *givenTrees) error {
	for _, t := range g.known {
		if err := g.addSubfolders(t); err != nil {
			return err
		}
	}
	for depth := 0; len(g.pending) > 0; depth++ {
		asked := g.pending
		if depth > g.caps.Depth { // each level costs a process
			return fmt.Errorf("more than %d folders inside each other: %w", g.caps.Depth, ErrTooBig)
		}
		if err := q.git.EachObject(ctx, asked, g.addFolder); err != nil {
			return err
		}
		g.pending = nil
		for _, id := range asked {
			if t := g.trees[rawID(id)]; t != nil {
				if err := g.addSubfolders(t); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// givenTrees collects folders of the given history.
type givenTrees struct {
	known     map[string]*tree // folders of the pack
	trees     map[string]*tree
	requested map[string]bool // all that were or will be read
	pending   []string        // the next to read, in hexadecimal
	caps      Caps
	idSize    int
	bytesRead int64 // bytes read so far
}

// addSubfolders adds the subfolders of a folder to the next level.
func (g *givenTrees) addSubfolders(t *tree) error {
	for id := range t.each(g.idSize) {
		if g.known[id] != nil || g.requested[id] {
			continue
		}
		if len(g.requested) == g.caps.Objects {
			return fmt.Errorf("more than %d folders: %w", g.caps.Objects, ErrTooBig)
		}
		g.requested[id] = true
		g.pending = append(g.pending, hex.EncodeToString([]byte(id)))
	}
	return nil
}

// addFolder stores one folder. It skips objects that are missing or not folders: git's check of the pack finds those, and in
// a partial clone folders further down may be missing.
func (g *givenTrees) addFolder(o git.Object, r io.Reader) error {
	if o.Kind != "tree" {
		return nil
	}
	if g.bytesRead += o.Size; g.bytesRead > treesLimit {
		return fmt.Errorf("%d bytes of folders so far: %w", g.bytesRead, ErrTooBig)
	}
	content := make([]byte, o.Size)
	if _, err := io.ReadFull(r, content); err != nil {
		return err
	}
	t, err := new(contents).parseTree(content, g.idSize)
	if err != nil {
		return err
	}
	g.trees[rawID(o.Name)] = t
	return nil
}
