package commits

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// maxDepth is the depth to which folders are compared; no commit of a run has deeper ones.
const maxDepth = 1000

// compare lists the files that differ between two trees. It only reads folders that differ; go-git's own comparison also
// reads all files in them.
func (r *Repo) compare(ctx context.Context, before, after *object.Tree) (object.Changes, error) {
	var out object.Changes
	if err := r.compareFolder(ctx, before, after, "", 0, &out); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b *object.Change) int { return cmp.Compare(cmpPath(a), cmpPath(b)) })
	return joinRenames(out), nil
}

// joinRenames joins a deleted file and an equal new one into one change. It ignores similar files, which go-git finds by
// comparing each file with each.
func joinRenames(changes object.Changes) object.Changes {
	type content struct {
		id   plumbing.Hash
		mode filemode.FileMode
	}
	contentOf := func(e object.ChangeEntry) content { return content{e.TreeEntry.Hash, e.TreeEntry.Mode} }
	deleted := map[content][]*object.Change{}
	for _, c := range changes {
		if c.To.Name == "" {
			deleted[contentOf(c.From)] = append(deleted[contentOf(c.From)], c)
		}
	}
	for _, c := range changes {
		if from := deleted[contentOf(c.To)]; c.From.Name == "" && len(from) > 0 {
			deleted[contentOf(c.To)] = from[1:]
			c.From, from[0].From = from[0].From, object.ChangeEntry{}
		}
	}
	return slices.DeleteFunc(changes, func(c *object.Change) bool { return c.From.Name == "" && c.To.Name == "" })
}

func (r *Repo) compareFolder(ctx context.Context, before, after *object.Tree, prefix string, depth int, out *object.Changes) error {
	if ctx.Err() != nil || depth > maxDepth {
		return cmp.Or(context.Cause(ctx), fmt.Errorf("more than %d folders are inside each other", maxDepth))
	}
	from, to := entriesByName(before), entriesByName(after)
	names := maps.Clone(from)
	maps.Copy(names, to)
	for name := range names {
		a, b := from[name], to[name]
		if a.Hash == b.Hash && a.Mode == b.Mode {
			continue
		}
		if !isFolder(a) && !isFolder(b) {
			*out = append(*out, &object.Change{From: changeEntry(before, prefix, a), To: changeEntry(after, prefix, b)})
			continue
		}
		if a.Mode != filemode.Empty && !isFolder(a) {
			*out = append(*out, &object.Change{From: changeEntry(before, prefix, a)})
		}
		if b.Mode != filemode.Empty && !isFolder(b) {
			*out = append(*out, &object.Change{To: changeEntry(after, prefix, b)})
		}
		old, err := r.readFolder(a)
		if err != nil {
			return err
		}
		now, err := r.readFolder(b)
		if err == nil {
			err = r.compareFolder(ctx, old, now, prefix+name+"/", depth+1, out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isFolder(e object.TreeEntry) bool { return e.Mode == filemode.Dir }

// readFolder returns the tree of an entry, or nil if the entry is not a folder.
func (r *Repo) readFolder(e object.TreeEntry) (*object.Tree, error) {
	if !isFolder(e) {
		return nil, nil
	}
	return object.GetTree(r.repo.Storer, e.Hash)
}

func entriesByName(t *object.Tree) map[string]object.TreeEntry {
	entries := map[string]object.TreeEntry{}
	if t != nil {
		for _, e := range t.Entries {
			entries[e.Name] = e
		}
	}
	return entries
}

// changeEntry returns one side of a change; it is zero if the file does not exist on that side.
func changeEntry(in *object.Tree, prefix string, e object.TreeEntry) object.ChangeEntry {
	if e.Mode == filemode.Empty {
		return object.ChangeEntry{}
	}
	return object.ChangeEntry{Name: prefix + e.Name, Tree: in, TreeEntry: e}
}
