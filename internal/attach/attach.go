// Package attach watches runs of other processes: those of a repository through its journal and the runs' folders, those of
// a service through its HTTP API. It only reads, except to stop runs and to pause projects.
package attach

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Run is an active run.
type Run struct {
	Project string // in a service; otherwise empty
	ID, Key string
	Title   string
	Started time.Time
	Used    agents.Usage
	Repo    string // folder of the repository; empty: unknown
	dir     string // the run's folder

	// Machine is the other host that has the run's events, which then cannot be followed: Stage and Doing describe the run
	// instead. Empty: the events can be followed.
	Machine string
	Stage   journal.Stage
	Doing   string
}

// Event is an event of a run.
type Event struct {
	Run   Run
	Old   bool // it happened before Watch started
	Found bool // Watch made this event when it found the run; it is not in the run's log
	journal.Event
}

// Source finds active runs and reads their events. Its methods are safe for concurrent use.
type Source interface {
	// Runs returns the active runs.
	Runs(ctx context.Context) ([]Run, error)
	// Follow calls each with the events of a run until the run or ctx ends, or the source becomes unreachable.
	Follow(ctx context.Context, r Run, each func(journal.Event))
	// Stop asks the run to end. Its work is kept.
	Stop(ctx context.Context, r Run) error
}

const (
	runsInterval = time.Second // interval between calls of Runs
	followMax    = 64          // maximum number of runs followed at the same time
	endedMax     = 1024        // maximum number of ended runs remembered: a source may list them a little longer
)

// Watch calls each with the events of all runs, one call at a time, until ctx ends. The first event of a run is an
// EventStarted (Found) with its title and start time, the last an EventEnded or EventDeferred. Watch calls away with the
// error when the source becomes unreachable, and with nil when it is reachable again.
func Watch(ctx context.Context, s Source, each func(Event), away func(error)) {
	w := watch{source: s, onEvent: each, began: time.Now(), followed: map[string]Run{}}
	defer w.following.Wait()
	failed := false
	for {
		runs, err := s.Runs(ctx)
		if ctx.Err() != nil {
			return
		}
		if (err != nil) != failed {
			failed = err != nil
			away(err)
		}
		for _, r := range runs {
			w.find(ctx, r)
		}
		if retry.Sleep(ctx, runsInterval) != nil {
			return
		}
	}
}

type watch struct {
	source    Source
	began     time.Time
	following sync.WaitGroup

	mu       sync.Mutex
	onEvent  func(Event)    // called with mu held
	followed map[string]Run // guarded by mu; the followed runs, as Runs last returned them
	ended    []string       // guarded by mu; the runs that ended last
}

// find starts to follow a run, unless it is already followed.
func (w *watch) find(ctx context.Context, r Run) {
	id := r.Project + "/" + r.ID
	w.mu.Lock()
	defer w.mu.Unlock()
	known, on := w.followed[id]
	if on {
		w.followed[id] = r
		if r.Machine != "" {
			w.reportChanges(known, r)
		}
		return
	}
	if len(w.followed) == followMax || slices.Contains(w.ended, id) {
		return
	}
	w.followed[id] = r
	w.following.Go(func() {
		ended, left := false, false
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.followed, id)
			if ended {
				w.ended = append(w.ended[max(0, len(w.ended)-endedMax+1):], id)
			}
		}()
		send := func(e Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.onEvent(e)
		}
		send(Event{r, true, true, journal.Event{Kind: journal.EventStarted, Run: r.ID, Key: r.Key, Title: r.Title, Time: r.Started}})
		if r.Machine != "" {
			w.mu.Lock()
			w.reportChanges(Run{}, r)
			w.mu.Unlock()
		}
		w.source.Follow(ctx, r, func(e journal.Event) {
			e.Run, e.Key = r.ID, r.Key
			ended, left = ended || e.Kind == journal.EventEnded, left || e.Kind == journal.EventDeferred
			send(Event{Run: r, Old: e.Time.Before(w.began), Event: e})
		})
		if !ended && !left && ctx.Err() == nil {
			gone := journal.Event{
				Kind: journal.EventDeferred,
				Run:  r.ID,
				Key:  r.Key,
				Time: time.Now(),
				Text: "its process has ended, or is away",
			}
			send(Event{Run: r, Event: gone})
		}
	})
}

// reportChanges reports the stage and activity of a run on another machine where they have changed. The caller holds mu.
func (w *watch) reportChanges(known, now Run) {
	e := journal.Event{Run: now.ID, Key: now.Key, Time: time.Now()}
	if now.Stage != known.Stage {
		e.Kind, e.Stage = journal.EventStage, now.Stage
		w.onEvent(Event{Run: now, Event: e})
	}
	if now.Doing != "" && now.Doing != known.Doing {
		e.Kind, e.Stage, e.Text = journal.EventNote, "", now.Doing
		w.onEvent(Event{Run: now, Event: e})
	}
}
