package importer

import (
	"cmp"
	"fmt"
)

// pathCounter counts the paths in folders without walking them: a few folders that contain each other several times have
// more paths than any program can list.
type pathCounter struct {
	trees map[string]*tree // folders of the pack
	given map[string]*tree // folders of the given history that the pack refers to
	caps  Caps

	idSize int
}

// count fills in paths, depth and longest path of a folder. A folder that exists nowhere has no paths; git refuses a pack
// that refers to it.
func (c pathCounter) count(id string, depthAbove int) (paths, depth int, err error) {
	t, ok := c.trees[id]
	if !ok {
		t, ok = c.given[id]
	}
	if !ok {
		return 0, 1, nil
	}
	if depthAbove > c.caps.Depth {
		return 0, 0, fmt.Errorf("more than %d folders inside each other: %w", c.caps.Depth, ErrTooBig)
	}
	if t.depth == 0 {
		t.paths, t.depth, t.longestPath, t.pathBytes = t.files, 1, t.longestName, t.nameBytes
		for id, name := range t.each(c.idSize) {
			paths, depth, err := c.count(id, depthAbove+1)
			if err != nil {
				return 0, 0, err
			}
			t.paths, t.depth = min(t.paths+paths, c.caps.Paths+1), max(t.depth, depth+1)
			below := c.folder(id)
			t.longestPath = max(t.longestPath, name+1+below.longestPath)
			t.pathBytes = min(t.pathBytes+below.pathBytes+int64(below.paths)*int64(name+1), c.caps.PathBytes+1)
		}
	}
	if t.paths > c.caps.Paths {
		return 0, 0, fmt.Errorf("more than %d paths: %w", c.caps.Paths, ErrTooBig)
	}
	if t.pathBytes > c.caps.PathBytes {
		return 0, 0, fmt.Errorf("paths of more than %d bytes together: %w", c.caps.PathBytes, ErrTooBig)
	}
	if depthAbove+t.depth > c.caps.Depth {
		return 0, 0, fmt.Errorf("more than %d folders inside each other: %w", c.caps.Depth, ErrTooBig)
	}
	if t.longestPath > pathLimit {
		return 0, 0, fmt.Errorf("a path has %d bytes, and file systems allow %d", t.longestPath, pathLimit)
	}
	return t.paths, t.depth, nil
}

// folder returns a folder that has been counted, or an empty one if the folder exists nowhere.
func (c pathCounter) folder(id string) *tree { return cmp.Or(c.trees[id], c.given[id], &tree{}) }

// countAll counts every folder of the pack.
func (c pathCounter) countAll() error {
	for id := range c.trees {
		if _, _, err := c.count(id, 1); err != nil {
			return err
		}
	}
	return nil
}
