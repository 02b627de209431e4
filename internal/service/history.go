package service

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/archive"
	"github.com/ralph-pool/ralph/tracker"
)

// ErrNoCommits is returned for the diff of a run without commits.
var ErrNoCommits = errors.New("the run has left no commits")

// ErrElsewhere is returned for the diff of a run whose commits are on another machine or were deleted.
var ErrElsewhere = errors.New("the run's commits are not on this machine")

// Totals returns the totals of a project's runs that started at or after since, in no particular order.
func (s *Service) Totals(ctx context.Context, name string, since time.Time) ([]journal.Total, error) {
	_, parts, err := s.opened(name)
	if err != nil {
		return nil, err
	}
	return journal.TotalsOf(ctx, parts.Store, "", since)
}

// copiesKept is the maximum number of folders copied from other machines per project.
const copiesKept = 32

// copyRunFolders makes the folders of runs that ended on other machines readable here, if there are copies. Records may come from
// other machines, so a record's path is used only if it is below the runs folder.
func (s *Service) copyRunFolders(ctx context.Context, parts *Parts, list []journal.Record) {
	copies := archive.Copies{Dir: filepath.Join(parts.Dir, "copies"), Most: copiesKept}
	for i, r := range list {
		if isBelow(filepath.Join(parts.Dir, "runs"), r.Dir) {
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

// isBelow reports whether the path exists and is below the folder, after resolving links.
func isBelow(folder, path string) bool {
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

// Retry starts a sweep that works the issue again; with fresh the work starts from the base. It refuses an issue that does
// not qualify and was never worked: nobody has asked for its first run.
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
	verb := tracker.Retry
	if fresh {
		verb = tracker.Fresh
	}
	return s.ask(ctx, name, key, by, verb, "")
}

// Waits lists the agents that issues with a pending retry wait for; see pool.Worker.
func (s *Service) Waits(ctx context.Context, name string) ([]journal.Parked, error) {
	_, parts, err := s.opened(name)
	if err != nil {
		return nil, err
	}
	return parts.Pool.AgentsToWaitFor(ctx)
}

// Fix is Retry with feedback for the agent, like the forge command /ralph fix.
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
	if s.Draining() || p.isRemoved() {
		return ErrDraining
	}
	if err := parts.Pool.Requeue(ctx, key, by, verb, text); err != nil {
		return err
	}
	p.boardOutdated.Store(true)
	p.wake()
	return nil
}
