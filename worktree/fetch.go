package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/importer"
)

func (t *Tree) quarantineDir() string { return filepath.Join(t.repo.temp, "quarantine-"+t.name) }

// refuseTries is how often the import is repeated without files that git's check of the objects refuses.
const refuseTries = 3

// fetch imports the objects of a private tree through its sandbox. If they are refused, it imports as much as possible: the
// changes without the refused files, the commits without the changes, or the changes without the commits.
func (t *Tree) fetch(ctx context.Context, in Inside, refs treeRefs) (found, error) {
	s := importer.Script{What: importer.All}
	var first error
	for range 2 * refuseTries {
		q, err := t.receive(ctx, in, s, refs)
		if err == nil {
			if s.What == importer.Branch {
				q.Notes = append(q.Notes, "commits outside of the branch: "+first.Error())
			}
			err = q.Report.Err()
			f := found{tip: q.Tip, tree: q.Tree, others: q.Others, links: q.Gitlinks, partial: err != nil && q.Tree == ""}
			if q.Lost != "" && len(q.Notes) > 0 { // the changes may have used up the space that the commits need
				if alone, failed := t.receive(ctx, in, importer.Script{What: importer.Commits}, refs); failed == nil && alone.Lost == "" {
					q.Lost, f.tip, f.links = "", alone.Tip, alone.Gitlinks
					err = q.Report.Err()
				}
			}
			return f, err
		}
		first = cmp.Or(first, err)
		if ctx.Err() != nil || errors.Is(err, importer.ErrInside) {
			return found{}, err
		}
		ids := git.ObjectsIn(err)
		if len(ids) == 0 || slices.Contains(s.Refuse, ids[0]) {
			if s.What == importer.Branch || importer.Full(err) {
				break
			}
			s.What = importer.Branch // the refused object may belong to a commit outside of the branch
		}
		s.Refuse = append(s.Refuse, ids...)
	}
	f := found{partial: true}
	if q, err := t.receive(ctx, in, importer.Script{What: importer.Commits}, refs); err == nil && q.Lost == "" {
		f.tip, f.links = q.Tip, q.Gitlinks
		return f, &importer.UnsavedError{Err: fmt.Errorf("uncommitted changes are not saved: %w", first)}
	}
	if q, err := t.receive(ctx, in, importer.Script{What: importer.Files}, refs); err == nil {
		f.tip, f.tree = q.Tip, q.Tree
	}
	return f, first
}

// receive runs the import script in the sandbox and checks its output.
func (t *Tree) receive(ctx context.Context, in Inside, s importer.Script, refs treeRefs) (*importer.Quarantine, error) {
	rec := t.record()
	config, err := t.userConfig(ctx)
	if err != nil {
		return nil, err
	}
	caps, since := t.capsNow(), rec.Made
	if now := time.Now(); now.Before(since) { // the clock was set back since, and new commits carry the new time
		since = now
	}
	last := refs.tip(rec.Start)
	known := slices.Compact([]string{last, rec.At, rec.History})
	s.GitDir, s.Branch, s.Last, s.Given, s.Known = t.privateDir(), rec.Spec.Branch, last, t.given(), known
	s.Blob, s.Files, s.Depth, s.Sparse = caps.Blob, caps.Files, caps.Depth, config.Get("core.sparsecheckout") == "true"
	q, err := t.runScript(ctx, in, s, importer.Env(config, false), importer.Options{
		Dir: t.quarantineDir(), Given: t.given(), Known: known, Shallow: t.sharedFile("shallow"), SHA256: t.repo.objects.SHA256,
		Since: since, Caps: caps,
	})
	if err != nil {
		return nil, err
	}
	return q, errors.Join(q.Accept(ctx, t.repo.git, t.givenDir()), q.Close())
}

// runScript runs the import script and reads its output.
func (t *Tree) runScript(ctx context.Context, in Inside, s importer.Script, env []string, o importer.Options) (*importer.Quarantine, error) {
	q, err := importer.Run(ctx, func(ctx context.Context, stdout, stderr io.Writer) (int, error) {
		return in(ctx, Command{Argv: s.Argv(), Env: env, Stdout: stdout, Stderr: stderr})
	}, o)
	return q, importer.ExplainSize(err, t.repo.opts.Caps, t.repo.places()...)
}

// places returns the folders that an import writes to.
func (r *Repo) places() []string {
	return []string{r.opts.StateDir, filepath.Join(r.at.Common, "objects")}
}

// capsNow returns the import caps, lowered to the free disk space.
func (t *Tree) capsNow() importer.Caps {
	return t.repo.opts.Caps.Now(!t.Spec().Private, t.repo.places()...)
}
