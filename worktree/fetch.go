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

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/importer"
)

func (t *Tree) quarantineDir() string { return filepath.Join(t.repo.tempDir, "quarantine-"+t.name) }

// refuseTries is how often the import is repeated without files that git's check of the objects refuses.
const refuseTries = 3

// readPrivate imports the objects of a private tree through its sandbox. If they are refused, it imports as much as
// possible: the changes without the refused files, the commits without the changes, or the changes without the commits.
func (t *Tree) readPrivate(ctx context.Context, in Inside, refs treeRefs) (foundWork, error) {
	if err := disk.Unlock(t.Folders()...); err != nil {
		return foundWork{}, err
	}
	s := importer.Script{Scope: importer.All}
	var firstErr error
	for range 2 * refuseTries {
		q, err := t.receive(ctx, in, s, refs)
		if err == nil {
			if s.Scope == importer.Branch {
				q.Notes = append(q.Notes, "commits outside of the branch: "+firstErr.Error())
			}
			err = q.Report.Err()
			f := foundWork{tip: q.Tip, tree: q.Tree, otherCommits: q.Others, mayHaveGitlinks: q.Gitlinks, filesUnread: err != nil && q.Tree == ""}
			if q.Lost != "" && len(q.Notes) > 0 { // the changes may have used up the space that the commits need
				if commitsOnly, commitsErr := t.receive(ctx, in, importer.Script{Scope: importer.Commits}, refs); commitsErr == nil && commitsOnly.Lost == "" {
					q.Lost, f.tip, f.mayHaveGitlinks = "", commitsOnly.Tip, commitsOnly.Gitlinks
					err = q.Report.Err()
				}
			}
			return f, err
		}
		firstErr = cmp.Or(firstErr, err)
		if ctx.Err() != nil || errors.Is(err, importer.ErrInside) {
			return foundWork{}, err
		}
		ids := git.ObjectsIn(err)
		if len(ids) == 0 || slices.Contains(s.Refuse, ids[0]) {
			if s.Scope == importer.Branch || importer.IsDiskFull(err) {
				break
			}
			s.Scope = importer.Branch // the refused object may belong to a commit outside of the branch
		}
		s.Refuse = append(s.Refuse, ids...)
	}
	f := foundWork{filesUnread: true}
	if q, err := t.receive(ctx, in, importer.Script{Scope: importer.Commits}, refs); err == nil && q.Lost == "" {
		f.tip, f.mayHaveGitlinks = q.Tip, q.Gitlinks
		return f, &importer.UnsavedError{Err: fmt.Errorf("uncommitted changes are not saved: %w", firstErr)}
	}
	if q, err := t.receive(ctx, in, importer.Script{Scope: importer.Files}, refs); err == nil {
		f.tip, f.tree = q.Tip, q.Tree
	}
	return f, firstErr
}

// receive runs the import script in the sandbox and checks its output.
func (t *Tree) receive(ctx context.Context, in Inside, s importer.Script, refs treeRefs) (*importer.Quarantine, error) {
	rec := t.record()
	config, err := t.userConfig(ctx)
	if err != nil {
		return nil, err
	}
	caps, since := t.currentCaps(), rec.Made
	if now := time.Now(); now.Before(since) { // the clock was set back since, and new commits carry the new time
		since = now
	}
	last := refs.tip(rec.Start)
	known := slices.Compact([]string{last, rec.FoldersCommit, rec.History})
	s.GitDir, s.Branch, s.Last, s.Given, s.Known = t.privateDir(), rec.Spec.Branch, last, t.objectFolders(), known
	s.Blob, s.Files, s.Depth, s.Sparse = caps.Blob, caps.Files, caps.Depth, config.Get("core.sparsecheckout") == "true"
	q, err := t.runScript(ctx, in, s, importer.Env(config, false), importer.Options{
		Dir: t.quarantineDir(), Given: t.objectFolders(), Known: known, Shallow: t.sharedFile("shallow"), SHA256: t.repo.objects.SHA256,
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
	return q, importer.ExplainSize(err, t.repo.opts.Caps, t.repo.importFolders()...)
}

// importFolders returns the folders that an import writes to.
func (r *Repo) importFolders() []string {
	return []string{r.opts.StateDir, filepath.Join(r.location.Common, "objects")}
}

// currentCaps returns the import caps, lowered to the free disk space.
func (t *Tree) currentCaps() importer.Caps {
	return t.repo.opts.Caps.WithinFreeSpace(!t.Spec().Private, t.repo.importFolders()...)
}
