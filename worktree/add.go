package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// lockReason begins the reason with which ralph locks its worktrees; it tells them from the user's.
const lockReason = "ralph run "

// Add makes the worktree. Where the branch (here or on the remote) already has commits that Base has not, it
// continues there. Remains of an earlier run of the same key are handed back first, never lost: a claim makes sure
// that such a run has ended.
func (r *Repo) Add(ctx context.Context, s Spec) (*Tree, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("add worktree: %w", err)
	}
	unlock, err := r.lock(ctx, s.Key)
	if err != nil {
		return nil, fmt.Errorf("add worktree for %s: %w", s.Key, err)
	}
	defer unlock()
	if err := r.handBackRemains(ctx, s.Key); err != nil {
		return nil, fmt.Errorf("add worktree for %s: %w", s.Key, err)
	}
	t, err := r.add(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("add worktree for %s: %w", s.Key, err)
	}
	return t, nil
}

// handBackRemains takes what earlier runs of the key left and removes their worktrees.
func (r *Repo) handBackRemains(ctx context.Context, key string) error {
	trees, err := r.Trees(ctx)
	if err != nil && ctx.Err() != nil {
		return err
	}
	// A broken record of another key is that key's trouble.
	for _, t := range trees {
		if t.rec.Spec.Key != key {
			continue
		}
		_, err := t.handBack(ctx)
		if err != nil && ctx.Err() == nil && t.record().Private {
			// It has been tried when the run ended, too. Another try would fail for ever.
			if err := t.setAside(err); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("remains of run %s in %s: %w", t.rec.Spec.Run, t.Dir(), err)
		}
		if err := t.remove(ctx); err != nil {
			return fmt.Errorf("remains of run %s in %s: %w", t.rec.Spec.Run, t.Dir(), err)
		}
	}
	return nil
}

func (r *Repo) add(ctx context.Context, s Spec) (*Tree, error) {
	remote, err := r.remoteBranch(ctx, s.Branch)
	if err != nil {
		return nil, err
	}
	have, err := r.readRefs(ctx, branchRef(s.Branch), workRef(s.Key), wipRef(s.Key), oldPrefix(s.Key))
	if err != nil {
		return nil, err
	}
	if have[branchRef(s.Branch)] != "" {
		if err := r.freeBranch(ctx, s, have); err != nil {
			return nil, err
		}
	}
	start, err := r.pickStart(ctx, s, have, remote)
	if err != nil {
		return nil, err
	}
	edits, err := r.startEdits(ctx, s, have, remote, start)
	if err != nil {
		return nil, err
	}
	remoteConfig, err := r.remoteConfig(ctx)
	if err != nil {
		return nil, err
	}
	t := &Tree{repo: r, name: s.folder(), refs: &treeRefs{branch: start, work: start, wip: have[wipRef(s.Key)]}}
	err = t.update(func(rec *record) {
		*rec = record{Spec: s, Start: start, Lease: remote, RemoteConfig: remoteConfig, Making: true,
			GitDir: filepath.Join(r.common, "worktrees", t.name)}
	})
	if err != nil {
		return nil, err
	}
	if err := r.git.moveRefs(ctx, "start run "+s.Run, edits...); err != nil {
		return nil, errors.Join(err, t.discard())
	}
	if err := t.noteRefs(ctx); err != nil {
		return nil, errors.Join(err, t.discard())
	}
	if err := t.make(ctx); err != nil {
		return nil, errors.Join(err, t.discard())
	}
	return t, nil
}

// pickStart decides where the run begins.
func (r *Repo) pickStart(ctx context.Context, s Spec, have map[string]string, remote string) (string, error) {
	if s.Fresh {
		return s.Base.Commit, nil
	}
	start := have[branchRef(s.Branch)]
	if remote != "" && remote != start {
		theirs, err := r.remoteIsNewer(ctx, s.Key, have, start, remote)
		if err != nil {
			return "", err
		}
		if theirs {
			start = remote
		}
	}
	if start == "" {
		return s.Base.Commit, nil
	}
	merged, err := r.git.contains(ctx, s.Base.Commit, start)
	if err != nil {
		return "", err
	}
	if merged {
		return s.Base.Commit, nil
	}
	return start, nil
}

// remoteIsNewer reports whether the branch on the remote is what to continue. Where both have commits of their own the
// remote wins, which is what people see, unless it is a tip that was here before and was left behind (by a rebase, say).
func (r *Repo) remoteIsNewer(ctx context.Context, key string, have map[string]string, local, remote string) (bool, error) {
	if local == "" {
		return true, nil
	}
	if remote == have[workRef(key)] || have[oldRef(key, remote)] == remote {
		return false, nil
	}
	behind, err := r.git.contains(ctx, local, remote)
	return !behind, err
}

// startEdits moves the branch and the work ref to start, and keeps every tip that start leaves behind.
func (r *Repo) startEdits(ctx context.Context, s Spec, have map[string]string, remote, start string) ([]refEdit, error) {
	var edits []refEdit
	aside := map[string]bool{}
	for _, tip := range []string{have[branchRef(s.Branch)], have[workRef(s.Key)], remote} {
		if tip == "" || aside[tip] {
			continue
		}
		inside, err := r.git.contains(ctx, start, tip)
		if err != nil {
			return nil, err
		}
		if !inside {
			aside[tip] = true
			edits = append(edits, refEdit{ref: oldRef(s.Key, tip), new: tip, keep: true})
		}
	}
	for _, ref := range []string{branchRef(s.Branch), workRef(s.Key)} {
		if have[ref] != start {
			edits = append(edits, refEdit{ref: ref, new: start, old: have[ref]})
		}
	}
	return edits, nil
}

// make makes the files and git's record of the worktree.
func (t *Tree) make(ctx context.Context) error {
	if err := t.link(ctx); err != nil {
		return err
	}
	rec := t.record()
	// Nobody but git has written the .git file yet: the only time that it is believed.
	content, err := os.ReadFile(filepath.Join(t.Dir(), ".git"))
	if err != nil {
		return err
	}
	gitDir := filepath.Clean(strings.TrimSpace(strings.TrimPrefix(string(content), "gitdir:")))
	if filepath.Dir(gitDir) != filepath.Dir(rec.GitDir) {
		return fmt.Errorf("git made the worktree's git directory in an unexpected place: %s", gitDir)
	}
	if gitDir != rec.GitDir {
		if err := t.update(func(rec *record) { rec.GitDir = gitDir }); err != nil {
			return err
		}
	}
	g, err := t.checkoutGit(ctx)
	if err != nil {
		return err
	}
	if _, err := g.out(ctx, "reset", "--hard", "--quiet", "--no-recurse-submodules"); err != nil {
		return fmt.Errorf("check out the files: %w", err)
	}
	return t.made()
}

// checkoutGit is git for writing the files of the start. Where an earlier run has changed which filters hold or where
// they load from, none is run: it would be the agent's choice what a program of the user's does on the host.
func (t *Tree) checkoutGit(ctx context.Context) (git, error) {
	rec := t.record()
	if rec.Start == rec.Spec.Base.Commit {
		return t.git(), nil
	}
	patterns := t.repo.git.with("GIT_LITERAL_PATHSPECS=0") // else these are the names of two files that never are
	same, err := patterns.yes(ctx, "diff-tree", "--quiet", "-r", "--no-ext-diff", "--no-textconv", "--end-of-options",
		rec.Spec.Base.Commit, rec.Start, "--", ":(icase,glob)**/.gitattributes", ":(icase,glob)**/.lfsconfig")
	if err != nil || same {
		return t.git(), err
	}
	config, err := t.userConfig(ctx)
	if err != nil {
		return git{}, err
	}
	return t.git().with(config.inert()...), nil
}

// link makes git's record of the worktree, without files. git reads all such records for this and dies at one that is
// half written, so that ralph's processes take turns; the user's own git does not, such as a prune that takes what has no lock yet; hence the further tries.
func (t *Tree) link(ctx context.Context) error {
	unlock, err := t.repo.lockWorktrees(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	rec := t.record()
	for try := 1; ; try++ {
		_, err := t.repo.git.out(ctx, "worktree", "add", "--no-checkout", "--lock", "--reason", lockReason+rec.Spec.Run,
			"--", t.Dir(), rec.Spec.Branch)
		if _, failed := errors.AsType[*GitError](err); !failed || try == linkTries {
			return err
		}
		if err := errors.Join(os.RemoveAll(t.Dir()), os.RemoveAll(rec.GitDir)); err != nil {
			return err
		}
		select {
		case <-time.After(time.Millisecond << try):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// linkTries is how often a worktree is begun before git's error counts; all pauses together are about a half second.
const linkTries = 9

// lockWorktrees serialises what adds, removes and lists git's records of worktrees.
func (r *Repo) lockWorktrees(ctx context.Context) (unlock func(), err error) {
	return lockFile(ctx, r.path("locks", "worktrees"))
}
