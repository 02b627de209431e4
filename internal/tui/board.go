package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
)

// Run identifies a run. Project is empty outside a service.
type Run struct{ Project, ID, Key string }

// logMax is the minimum number of log lines kept for a run.
const logMax = 400

// row is the state of an active run.
type row struct {
	Run
	title   string
	started time.Time
	phase   string
	last    string
	used    agents.Usage
	log     []string // shared with snapshots: only appended to, never changed in place
}

// board is the state of the runs, built from their events. Its rows are the active runs in the order of their start.
type board struct {
	rows      []row
	succeeded int
	ended     int // includes succeeded
	spent     agents.Usage
	away      time.Time // when the runs could be read last; zero: they can be read
}

// event updates the board. text is the event's log entry; empty: it has none.
func (b *board) event(project string, e journal.Event, text string) {
	if e.Run == "" {
		return
	}
	i := slices.IndexFunc(b.rows, func(r row) bool { return r.ID == e.Run && r.Project == project })
	if e.Kind == journal.EventEnded || e.Kind == journal.EventDeferred {
		b.end(i, e)
		return
	}
	if i < 0 {
		b.rows = append(b.rows, row{Run: Run{project, e.Run, e.Key}, started: e.Time, phase: "starting"})
		i = len(b.rows) - 1
	}
	r := &b.rows[i]
	if e.Title != "" {
		r.title = e.Title
	}
	if e.Kind == journal.EventStarted && e.Time.Before(r.started) {
		r.started = e.Time
	}
	r.setActivity(e)
	if text != "" {
		r.log = appendLog(r.log, e.Time, text)
	}
}

// setActivity updates what the run is doing now.
func (r *row) setActivity(e journal.Event) {
	if text, ok := report.Action(e); ok {
		r.last = text
	}
	switch e.Kind {
	case journal.EventStage:
		r.phase = string(e.Stage)
	case journal.EventIteration:
		r.phase = fmt.Sprintf("iteration %d", e.Iteration)
	case journal.EventReview, journal.EventUsage:
		if e.Usage != nil {
			r.used = r.used.Add(*e.Usage)
		}
	}
}

// end removes a run.
func (b *board) end(i int, e journal.Event) {
	var used agents.Usage
	if i >= 0 {
		used = b.rows[i].used
		b.rows = slices.Delete(slices.Clone(b.rows), i, i+1)
	}
	ended := e.Kind == journal.EventEnded
	if ended && e.Usage != nil {
		used = *e.Usage
	}
	b.spent = b.spent.Add(used)
	if !ended {
		return
	}
	b.ended++
	if e.Outcome == journal.Succeeded {
		b.succeeded++
	}
}

// total returns the usage of all runs.
func (b *board) total() agents.Usage {
	sum := b.spent
	for _, r := range b.rows {
		sum = sum.Add(r.used)
	}
	return sum
}

// snapshot returns a copy for another goroutine.
func (b *board) snapshot() board {
	now := *b
	now.rows = slices.Clone(b.rows)
	return now
}

// appendLog appends the lines of a text and drops old lines.
func appendLog(log []string, at time.Time, text string) []string {
	begin := at.Local().Format(time.TimeOnly) + "  "
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		log = append(log, begin+plain(line))
		begin = strings.Repeat(" ", stamp)
	}
	if len(log) > 2*logMax { // rarely, because each time copies the kept lines
		log = slices.Clone(log[len(log)-logMax:])
	}
	return log
}
