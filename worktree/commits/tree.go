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

// mostFolders is the depth to which folders are compared; no commit of a run has deeper ones.
const mostFolders = 1000

// compare lists the files that differ between two trees. It only reads folders that differ; go-git's own comparison also
// reads all files in them.
func (r *Repo) compare(ctx context.Context, before, after *object.Tree) (object.Changes, error) {
	var out object.Changes
	if err := r.compareFolder(ctx, before, after, "", 0, &out); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b *object.Change) int { return cmp.Compare(cmpPath(a), cmpPath(b)) })
	return renamed(out), nil
}

// renamed joins a deleted file and an equal new one into one change. It ignores similar files, which go-git finds by
// comparing each file with each.
func renamed(changes object.Changes) object.Changes {
	type content struct {
		id   plumbing.Hash
		mode filemode.FileMode
	}
	of := func(e object.ChangeEntry) content { return content{e.TreeEntry.Hash, e.TreeEntry.Mode} }
	gone := map[content][]*object.Change{}
	for _, c := range changes {
		if c.To.Name == "" {
			gone[of(c.From)] = append(gone[of(c.From)], c)
		}
	}
	for _, c := range changes {
		if from := gone[of(c.To)]; c.From.Name == "" && len(from) > 0 {
			gone[of(c.To)] = from[1:]
			c.From, from[0].From = from[0].From, object.ChangeEntry{}
		}
	}
	return slices.DeleteFunc(changes, func(c *object.Change) bool { return c.From.Name == "" && c.To.Name == "" })
}

func (r *Repo) compareFolder(ctx context.Context, before, after *object.Tree, at string, depth int, out *object.Changes) error {
	if ctx.Err() != nil || depth > mostFolders {
		return cmp.Or(context.Cause(ctx), fmt.Errorf("more than %d folders are inside each other", mostFolders))
	}
	from, to := byName(before), byName(after)
	names := maps.Clone(from)
	maps.Copy(names, to)
	for name := range names {
		a, b := from[name], to[name]
		if a.Hash == b.Hash && a.Mode == b.Mode {
			continue
		}
		if !isFolder(a) && !isFolder(b) {
			*out = append(*out, &object.Change{From: entry(before, at, a), To: entry(after, at, b)})
			continue
		}
		if a.Mode != filemode.Empty && !isFolder(a) {
			*out = append(*out, &object.Change{From: entry(before, at, a)})
		}
		if b.Mode != filemode.Empty && !isFolder(b) {
			*out = append(*out, &object.Change{To: entry(after, at, b)})
		}
		old, err := r.folder(a)
		if err != nil {
			return err
		}
		now, err := r.folder(b)
		if err == nil {
			err = r.compareFolder(ctx, old, now, at+name+"/", depth+1, out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isFolder(e object.TreeEntry) bool { return e.Mode == filemode.Dir }

// folder returns the tree of an entry, or nil if the entry is not a folder.
func (r *Repo) folder(e object.TreeEntry) (*object.Tree, error) {
	if !isFolder(e) {
		return nil, nil
	}
	return object.GetTree(r.repo.Storer, e.Hash)
}

func byName(t *object.Tree) map[string]object.TreeEntry {
	entries := map[string]object.TreeEntry{}
	if t != nil {
		for _, e := range t.Entries {
			entries[e.Name] = e
		}
	}
	return entries
}

// entry returns one side of a change; it is zero if the file does not exist on that side.
func entry(in *object.Tree, at string, e object.TreeEntry) object.ChangeEntry {
	if e.Mode == filemode.Empty {
		return object.ChangeEntry{}
	}
	return object.ChangeEntry{Name: at + e.Name, Tree: in, TreeEntry: e}
}
