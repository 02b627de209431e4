// Package attach follows runs of other processes: those of a repository, from its journal and the folders of the runs, and those
// of a service, from its HTTP API. It changes nothing, but for what a person asks for.
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

// Run is a run that is on.
type Run struct {
	Project string // of a service; else empty
	ID, Key string
	Title   string
	Started time.Time
	Used    agents.Usage
	Repo    string // folder of the repository, if it is known
	dir     string // of the run

	// Machine is another host that has the run's events; empty: they can be followed. Then Stage and Doing say what it does.
	Machine string
	Stage   journal.Stage
	Doing   string
}

// Event is an event of a run.
type Event struct {
	Run   Run
	Old   bool // it happened before Watch began
	Found bool // it says that the run is on, and is not one of the run's own
	journal.Event
}

// Source is where runs are. Its methods are safe for concurrent use.
type Source interface {
	// Runs are the runs that are on.
	Runs(ctx context.Context) ([]Run, error)
	// Follow calls each with the events of a run until the run or ctx ends, or the source is away.
	Follow(ctx context.Context, r Run, each func(journal.Event))
	// Stop asks that a run end. Its work is kept.
	Stop(ctx context.Context, r Run) error
}

const (
	look      = time.Second // between looks at what is on
	followMax = 64          // runs that are followed at the same time
	endedMax  = 1024        // runs that are known to have ended: a source may list them a little longer
)

// Watch calls each with the events of all runs, one at a time, until ctx ends. A run begins with an EventStarted (Found) that has its
// title and its time, and ends with an EventEnded or an EventDeferred. away is called when the source cannot be asked, and with nil
// when it can again; the source has just been asked before.
func Watch(ctx context.Context, s Source, each func(Event), away func(error)) {
	w := watch{source: s, each: each, began: time.Now(), on: map[string]Run{}}
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
		if retry.Sleep(ctx, look) != nil {
			return
		}
	}
}

type watch struct {
	source    Source
	began     time.Time
	following sync.WaitGroup

	mu    sync.Mutex
	each  func(Event)    // called with mu held
	on    map[string]Run // guarded by mu; the runs that are followed, as they were at the last look
	ended []string       // guarded by mu; the last runs that have ended
}

// find follows a run that is not followed yet.
func (w *watch) find(ctx context.Context, r Run) {
	id := r.Project + "/" + r.ID
	w.mu.Lock()
	defer w.mu.Unlock()
	known, on := w.on[id]
	if on {
		w.on[id] = r
		if r.Machine != "" {
			w.tell(known, r)
		}
		return
	}
	if len(w.on) == followMax || slices.Contains(w.ended, id) {
		return
	}
	w.on[id] = r
	w.following.Go(func() {
		ended, left := false, false
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.on, id)
			if ended {
				w.ended = append(w.ended[max(0, len(w.ended)-endedMax+1):], id)
			}
		}()
		send := func(e Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.each(e)
		}
		send(Event{r, true, true, journal.Event{Kind: journal.EventStarted, Run: r.ID, Key: r.Key, Title: r.Title, Time: r.Started}})
		if r.Machine != "" {
			w.mu.Lock()
			w.tell(Run{}, r)
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

// tell says what a run does on another machine, if that is not known yet. mu is held.
func (w *watch) tell(known, now Run) {
	e := journal.Event{Run: now.ID, Key: now.Key, Time: time.Now()}
	if now.Stage != known.Stage {
		e.Kind, e.Stage = journal.EventStage, now.Stage
		w.each(Event{Run: now, Event: e})
	}
	if now.Doing != "" && now.Doing != known.Doing {
		e.Kind, e.Stage, e.Text = journal.EventNote, "", now.Doing
		w.each(Event{Run: now, Event: e})
	}
}
