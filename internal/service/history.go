package service

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/archive"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
)

// ErrNoCommits is the error of the diff of a run that has left none.
var ErrNoCommits = errors.New("the run has left no commits")

// ErrElsewhere is the error of the diff of a run whose commits are on another machine, or have been deleted.
var ErrElsewhere = errors.New("the run's commits are not on this machine")

// Totals adds up the runs of a project that began since then, in no order.
func (s *Service) Totals(ctx context.Context, name string, since time.Time) ([]journal.Total, error) {
	_, parts, err := s.opened(name)
	if err != nil {
		return nil, err
	}
	return journal.TotalsOf(ctx, parts.Store, "", since)
}

// copiesKept is how many copies of other machines' folders a project keeps on this one.
const copiesKept = 32

// bring makes the folders of runs that have ended elsewhere readable here, as far as there are copies. Another machine may have written
// a record, so it may name no folder of this one but that of a run.
func (s *Service) bring(ctx context.Context, parts *Parts, list []journal.Record) {
	copies := archive.Copies{Dir: filepath.Join(parts.Dir, "copies"), Most: copiesKept}
	for i, r := range list {
		if within(filepath.Join(parts.Dir, "runs"), r.Dir) {
			continue
		}
		if list[i].Dir = filepath.Join(copies.Dir, ".none"); r.Ended.IsZero() {
			continue
		}
		dir, err := copies.Get(r.ID, func() ([]byte, error) { return parts.Folder(ctx, r.ID) })
		if err != nil {
			s.c.Log.Debug("folder of a run of another machine not read", "run", r.ID, "error", err)
		} else if dir != "" {
			list[i].Dir = dir
		}
	}
}

// within reports that a path is there, and below a folder, wherever links lead.
func within(folder, path string) bool {
	at, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return false
	}
	below, err := filepath.Rel(folder, at)
	return err == nil && filepath.IsLocal(below)
}

// Retry has the next sweep, which begins now, work an issue again; fresh begins at the base. What does not qualify and was never worked
// is refused: nobody has asked for the first run.
func (s *Service) Retry(ctx context.Context, name, key, by string, fresh bool) error {
	_, parts, err := s.opened(name)
	if err != nil {
		return err
	}
	issue, err := parts.Tracker.Get(ctx, key)
	if err != nil {
		return err
	}
	if why := issue.Unfit([]string{parts.PickUp}, nil); issue.Open && why.Code != "" && !issue.HasLabel(parts.InReview) {
		runs, err := parts.Store.Find(ctx, journal.Query{Key: key, Kind: journal.KindIssue, Limit: 1})
		if err != nil {
			return err
		}
		if len(runs) == 0 {
			return fmt.Errorf("%s, and it was never worked", why.Sentence())
		}
	}
	if fresh {
		return s.ask(ctx, name, key, by, tracker.Fresh, "")
	}
	return s.ask(ctx, name, key, by, tracker.Retry, "")
}

// Waits lists the agents that an issue waits for which is to be worked again; see pool.Worker.
func (s *Service) Waits(ctx context.Context, name string) ([]journal.Parked, error) {
	_, parts, err := s.opened(name)
	if err != nil {
		return nil, err
	}
	return parts.Pool.Waits(ctx)
}

// Fix is Retry with feedback for the agent, as the command /ralph fix is on a forge.
func (s *Service) Fix(ctx context.Context, name, key, by, text string) error {
	_, text, _ = tracker.ParseCommand("/ralph fix " + text)
	if text == "" {
		return errors.New("say what has to be done")
	}
	return s.ask(ctx, name, key, by, tracker.Fix, text)
}

func (s *Service) ask(ctx context.Context, name, key, by string, verb tracker.Verb, text string) error {
	p, parts, err := s.opened(name)
	if err != nil {
		return err
	}
	if err := parts.Pool.Requeue(ctx, key, by, verb, text); err != nil {
		return err
	}
	p.moved.Store(true)
	p.wake()
	return nil
}

// Diff is the beginning of what the commits of a run change, as git writes it: first the lines of --numstat, which name all
// files, then the patch. cut says that there is more than limit bytes.
// No filter, text conversion or external diff runs.
func (s *Service) Diff(ctx context.Context, name string, r journal.Record, limit int) (diff []byte, cut bool, err error) {
	p, parts, err := s.opened(name)
	if err != nil {
		return nil, false, err
	}
	if !git.IsObject(r.Tip) { // a record may be another machine's: a name, such as that of the stash, would show what is here
		return nil, false, ErrNoCommits
	}
	status := p.status()
	repo, err := worktree.Open(ctx, status.Repo, worktree.Options{StateDir: parts.Dir})
	if err != nil {
		return nil, false, err
	}
	g := repo.Git().Within(diffTime)
	is := func() bool { ok, err := g.Yes(ctx, "cat-file", "-e", r.Tip+"^{commit}"); return ok && err == nil }
	if !is() && parts.Fetch != nil { // another machine has made it
		if err := parts.Fetch(ctx, r.Branch); err != nil {
			return nil, false, err
		}
	}
	if !is() {
		return nil, false, fmt.Errorf("%w, and %s on the remote does not have them", ErrElsewhere, r.Branch)
	}
	base := r.Base
	if r.Verified.Tip == r.Tip { // it may be merged since, or the base's branch be gone
		base = cmp.Or(r.Verified.Base, base)
	}
	fork, err := g.Out(ctx, "merge-base", "--end-of-options", base, r.Tip)
	if err != nil {
		return nil, false, fmt.Errorf("compare with %s: %w", base, err)
	}
	err = g.Read(ctx, "", func(out *bufio.Reader) error {
		var err error
		if diff, err = io.ReadAll(io.LimitReader(out, int64(limit)+1)); len(diff) > limit {
			diff, cut, err = diff[:limit], true, errEnough
		}
		return err
	}, "diff-tree", "-r", "--numstat", "--patch", "--find-renames", "-l2000", "--no-color", "--no-ext-diff", "--no-textconv",
		"--submodule=short", "--src-prefix=a/", "--dst-prefix=b/", "--end-of-options", strings.TrimSpace(fork), r.Tip, "--")
	if cut {
		err = nil
	}
	return diff, cut, err
}

var errEnough = errors.New("enough has been read")

// diffTime bounds each git command of a diff.
const diffTime = 20 * time.Second
