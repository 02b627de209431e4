package worktree

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/importer"
	"github.com/ralph-pool/ralph/worktree/internal/index"
	"github.com/ralph-pool/ralph/worktree/internal/link"
	"github.com/ralph-pool/ralph/worktree/internal/private"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
	"github.com/ralph-pool/ralph/worktree/internal/traces"
)

// readLinked finds the tip and the uncommitted changes of a linked worktree, whose agent works on the host as the user. The
// error says what could not be read.
func (t *Tree) readLinked(ctx context.Context) (foundWork, error) {
	noFolder := disk.Unlock(t.record().GitDir, t.Dir()) // the commits may be readable all the same
	hasFiles, _ := t.exists()
	hasFiles = hasFiles && noFolder == nil
	head, dirty := "", false
	var statusErr error
	if hasFiles {
		head, dirty, statusErr = t.git().WithTimeout(t.repo.statusTime).Status(ctx)
	}
	if config, err := t.userConfig(ctx); hasFiles && !dirty && statusErr == nil && err == nil && config.Get("core.sparsecheckout") != "true" {
		dirty, statusErr = index.HidesChanges(ctx, t.git())
	}
	if statusErr != nil && ctx.Err() != nil {
		return foundWork{}, statusErr
	}
	if head == "" {
		var err error
		if head, err = traces.FindHead(ctx, t.git(), t.record().GitDir); err != nil {
			return foundWork{}, cmp.Or(noFolder, err)
		}
		if head == "" {
			return foundWork{filesUnread: true}, fmt.Errorf("HEAD of the worktree %s is at no commit; put it back with: git -C %s switch %s",
				t.Dir(), git.Quote(t.Dir()), t.Spec().Branch)
		}
	}
	f := foundWork{tip: head, mayHaveGitlinks: dirty || index.MayHaveGitlinks(t.record().GitDir), filesUnread: !hasFiles}
	if !dirty && statusErr == nil || !hasFiles {
		return f, noFolder
	}
	tree, err := t.snapshot(ctx, head)
	f.tree, f.filesUnread = tree, tree == "" && err != nil
	return f, err
}

// checkGitFiles refuses pipes in the place of git's own files, on which every git command of the host would block.
func (t *Tree) checkGitFiles() error {
	s, n := t.Spec(), t.repo.refNames
	if s.Private { // an agent in a sandbox cannot reach these files
		return nil
	}
	return link.CheckFiles(t.repo.location, t.record().GitDir, refname.Branch(s.Branch), n.Work(s.Key), n.WIP(s.Key))
}

// snapshot writes the files of a linked worktree as a tree object and returns its ID, or "" if the files equal those of
// head. It runs the same script as a sandbox does, on a copy of the index, so neither index nor files change.
func (t *Tree) snapshot(ctx context.Context, head string) (tree string, err error) {
	config, err := t.userConfig(ctx)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(t.repo.tempDir, "look-"+rand.Text())
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := private.WriteStandIn(dir, t.record().GitDir, t.repo.location, config); err != nil {
		return "", err
	}
	given := []string{filepath.Join(t.repo.location.Common, "objects")}
	caps := t.currentCaps()
	q, err := t.runScript(ctx, t.runOnHost, importer.Script{
		Scope: importer.Files, GitDir: dir, Branch: "none", Last: head, Blob: caps.Blob, Files: caps.Files, Depth: caps.Depth,
		Sparse: config.Get("core.sparsecheckout") == "true", Given: given, Known: []string{head},
	}, importer.Env(config, true), importer.Options{
		Dir: t.quarantineDir(), Given: given, Known: []string{head}, Shallow: t.sharedFile("shallow"), SHA256: t.repo.objects.SHA256,
		Since: time.Unix(0, 0), Caps: caps,
	})
	if err != nil {
		return "", fmt.Errorf("save uncommitted changes: %w", err)
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	if err := q.Accept(ctx, t.repo.git, ""); err != nil {
		return "", err
	}
	return q.Tree, q.Report.Err()
}

// runOnHost is an Inside that runs commands on the host, in the worktree.
func (t *Tree) runOnHost(ctx context.Context, c Command) (int, error) {
	env := append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, c.Env...)
	exit, err := proc.Run(ctx, proc.Spec{Argv: c.Argv, Dir: t.Dir(), Env: env, Stdout: c.Stdout, Stderr: c.Stderr})
	return exit.Code, err
}

// Attach points HEAD at the branch, whose tip is the commit of HEAD, so that neither index nor files change. It does
// nothing during a rebase, merge or the like.
func (t *Tree) Attach(ctx context.Context) error {
	rec := t.record()
	if _, hasEntry := t.exists(); !hasEntry || t.hasUnfinishedOperation() {
		return nil
	}
	if ref, err := t.repo.git.Head(ctx, rec.GitDir); err == nil && ref == refname.Branch(rec.Spec.Branch) {
		return nil
	}
	_, err := t.git().Output(ctx, "symbolic-ref", "-m", "ralph: back to the branch", "HEAD", refname.Branch(rec.Spec.Branch))
	if err != nil {
		return fmt.Errorf("put HEAD back on %s: %w", rec.Spec.Branch, err)
	}
	return nil
}
