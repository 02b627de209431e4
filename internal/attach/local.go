package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Local reads the runs of a repository on this host. It implements Source.
type Local struct{ Journal journal.Store }

// Runs implements Source.
func (l Local) Runs(ctx context.Context) (runs []Run, err error) {
	open, err := l.Journal.Find(ctx, journal.Query{Open: true})
	for _, r := range open {
		if proc.Alive(r.PID, r.Process) {
			runs = append(runs, Run{ID: r.ID, Key: r.Key, Title: r.Title, Started: r.Started, Used: r.Facts.Usage, dir: r.Dir})
		}
	}
	return runs, err
}

const (
	check    = 250 * time.Millisecond // interval between reads of a run's events
	runCheck = 8                      // reads without a new event before the run's record is checked
	wholeMax = 16 << 20               // largest events file, in bytes, that is read from its beginning
	tail     = 1 << 20                // bytes read from the end of a larger one
)

// Follow implements Source.
func (l Local) Follow(ctx context.Context, r Run, each func(journal.Event)) {
	at := int64(0)
	if info, err := os.Stat(filepath.Join(r.dir, journal.EventsFile)); err == nil && info.Size() > wholeMax {
		at = info.Size() - tail
		each(journal.Event{Kind: journal.EventUsage, Time: r.Started, Usage: &r.Used})
	}
	for idle, over := 1, false; ; idle++ {
		err := journal.ReadEventsFrom(r.dir, at, func(e journal.Event, next int64) error {
			at, idle, over = next, 0, over || e.Kind == journal.EventEnded
			each(e)
			return ctx.Err()
		})
		if err != nil || over {
			return
		}
		if idle%runCheck == 0 {
			over = !l.isRunning(ctx, r) // one more read, for events written before the run ended
			continue
		}
		if retry.Sleep(ctx, check) != nil {
			return
		}
	}
}

func (l Local) find(ctx context.Context, r Run) (journal.Record, error) {
	runs, err := l.Journal.Find(ctx, journal.Query{Run: r.ID, Limit: 1})
	if err == nil && len(runs) == 0 {
		err = errors.New("there is no such run")
	}
	if err != nil {
		return journal.Record{}, err
	}
	return runs[0], nil
}

func (l Local) isRunning(ctx context.Context, r Run) bool {
	now, err := l.find(ctx, r)
	return err == nil && now.Ended.IsZero() && proc.Alive(now.PID, now.Process)
}

// Stop implements Source.
func (l Local) Stop(ctx context.Context, r Run) error {
	now, err := l.find(ctx, r)
	if err == nil && (!now.Ended.IsZero() || !proc.Alive(now.PID, now.Process)) {
		err = errors.New("it is not being worked any more")
	}
	if err == nil {
		err = journal.RequestStop(now)
	}
	if err != nil {
		return fmt.Errorf("stop %s: %w", r.Key, err)
	}
	return nil
}
