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

// refuseTries is how often the uncommitted changes are asked for again without the files that git's check refuses.
const refuseTries = 3

// fetch imports the objects of a private tree through its sandbox. When they are refused, it takes what can be had: the
// changes without the files that are refused, the commits without the changes, or the changes without the commits.
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
			if q.Lost != "" && len(q.Notes) > 0 { // with the changes there may have been no room for the commits
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
			s.What = importer.Branch // it may be another commit's
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

// receive runs the script inside and accepts what it sends.
func (t *Tree) receive(ctx context.Context, in Inside, s importer.Script, refs treeRefs) (*importer.Quarantine, error) {
	rec := t.record()
	config, err := t.userConfig(ctx)
	if err != nil {
		return nil, err
	}
	caps, since := t.capsNow(), rec.Made
	if now := time.Now(); now.Before(since) { // the clock was set back, and commits have the dates of the new one
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

// runScript runs the import script and reads what it prints.
func (t *Tree) runScript(ctx context.Context, in Inside, s importer.Script, env []string, o importer.Options) (*importer.Quarantine, error) {
	q, err := importer.Run(ctx, func(ctx context.Context, stdout, stderr io.Writer) (int, error) {
		return in(ctx, Command{Argv: s.Argv(), Env: env, Stdout: stdout, Stderr: stderr})
	}, o)
	return q, importer.ExplainSize(err, t.repo.opts.Caps, t.repo.places()...)
}

// places are where an import writes.
func (r *Repo) places() []string {
	return []string{r.opts.StateDir, filepath.Join(r.at.Common, "objects")}
}

// capsNow are the caps, as far as there is room.
func (t *Tree) capsNow() importer.Caps {
	return t.repo.opts.Caps.Now(!t.Spec().Private, t.repo.places()...)
}
