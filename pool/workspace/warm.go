package workspace

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/pool/workspace/homes"
	"github.com/ralph-pool/ralph/worktree/filecopy"
)

// AddSetupFiles adds the files that setup has made on the base to a new tree, if setup would make the same there. Then SetUp is true. It
// must be called before the sandbox opens. For a clean checkout ralph's own knowledge of what setup reads is not enough: a
// success must not rest on it.
func (w *Workspace) AddSetupFiles(ctx context.Context) {
	w.addKeptSetup(ctx, w.Tree == nil || !w.Tree.Spec().Detached || w.c.Homes != nil && len(w.c.Homes.Inputs) > 0)
}

func (w *Workspace) addKeptSetup(ctx context.Context, sure bool) {
	w.skipSetup = false
	if w.findKeptSetup(ctx); w.keptSetup == nil || !w.keptSetup.Alone || !sure {
		return
	}
	ok, err := w.addMade(ctx)
	if err != nil {
		w.c.Log.Warn("setup runs again", "run", w.id, "reason", err)
	}
	w.skipSetup = ok && err == nil
}

// SetUp reports whether setup need not run, because the tree and the home of the open sandbox have what it makes.
func (w *Workspace) SetUp() bool { return w.skipSetup }

// findKeptSetup finds what setup has made for the tree's commit.
func (w *Workspace) findKeptSetup(ctx context.Context) {
	if w.keptSetup != nil || w.c.Homes == nil || w.Tree == nil {
		return
	}
	s := w.Tree.Spec()
	from := s.Base.Commit
	if s.Detached {
		from = s.FilterBase
	}
	w.keptSetup = w.c.Homes.Use(ctx, w.Tree.Start(), from, s.Detached)
}

// addMade adds the files to the tree. ok is false if they are not kept, or if the tree has files in their place.
func (w *Workspace) addMade(ctx context.Context) (ok bool, err error) {
	made, ok, err := w.keptSetup.Made()
	if !ok || err != nil || len(made) == 0 {
		return ok, err
	}
	var parents []string // only the deepest folders
	for _, name := range made {
		dir := path.Dir(name)
		if dir != "." && !slices.ContainsFunc(parents, func(p string) bool { return homes.IsBelow(p, dir) }) {
			parents = append(slices.DeleteFunc(parents, func(p string) bool { return homes.IsBelow(dir, p) }), dir)
		}
	}
	list := func(names []string, flags ...string) (string, error) {
		return w.c.Repo.Git().Output(ctx, slices.Concat([]string{"ls-tree", "--full-tree"}, flags, []string{w.Tree.Start(), "--"}, names)...)
	}
	there, err := list(made, "-r", "--name-only")
	if err != nil || there != "" {
		return false, err
	}
	if len(parents) > 0 { // a commit can remove them or make one a link or a file; then setup may not do the same
		if there, err = list(parents, "-d"); err != nil {
			return false, err
		}
		trees := 0
		for line := range strings.Lines(there) {
			if strings.HasPrefix(line, "040000 tree ") {
				trees++
			}
		}
		if trees != len(parents) {
			return false, nil
		}
	}
	tree := w.keptSetup.Tree()
	if can := w.c.Layers(); can != nil && can(ctx, w.c.Repo.Temp()) == nil {
		return true, w.Tree.AddSetup(tree)
	}
	return true, filecopy.Copy(ctx, tree, w.Dir, made, nil, filecopy.AnyLink)
}
