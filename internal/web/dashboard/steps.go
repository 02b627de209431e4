package dashboard

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
)

// Limits of timelines.
const (
	stepsLimit  = 200     // maximum number each of stages and iterations of a run
	stepsRead   = 1 << 30 // bytes of a log read for one page
	stepsLogs   = 64      // maximum number of cached logs
	stepsBuffer = 1 << 20 // bytes; a longer line is not a step
)

// step is a stage or an iteration in a run's timeline.
type step struct {
	Name   string
	Sub    bool // iteration: part of the stage above
	Began  time.Time
	After  time.Duration // time since the start of the run
	Took   time.Duration
	X, Len int // position and length in thousandths of the run
}

// stepIndex caches the start times of steps for recently shown runs, and evicts them in the order of insertion. Of a log
// that has grown it reads only the new part. It is safe for concurrent use.
type stepIndex struct {
	mu    sync.Mutex
	logs  map[string]*stepLog // guarded by mu; by folder
	order []string            // guarded by mu; keys of logs in the order of insertion
}

// stepLog is the cache of one log.
type stepLog struct {
	mu                 sync.Mutex
	read               int64  // guarded by mu; offset up to which the log was read
	found              []step // guarded by mu
	stages, iterations int    // guarded by mu
}

// log returns the cache for the log in a folder.
func (x *stepIndex) log(dir string) *stepLog {
	x.mu.Lock()
	defer x.mu.Unlock()
	if l := x.logs[dir]; l != nil {
		return l
	}
	if x.logs == nil {
		x.logs = map[string]*stepLog{}
	}
	if len(x.order) == stepsLogs {
		delete(x.logs, x.order[0])
		x.order = x.order[1:]
	}
	x.logs[dir], x.order = &stepLog{}, append(x.order, dir)
	return x.logs[dir]
}

// of returns the stages and iterations of a run. cut means that the log was too long to find all of them.
func (x *stepIndex) of(r journal.Record, end time.Time) (out []step, cut bool, err error) {
	f, size, err := openLog(r.Dir, journal.EventsFile)
	if err != nil || f == nil {
		return nil, false, err
	}
	defer f.Close()
	l := x.log(r.Dir)
	l.mu.Lock()
	if size < l.read {
		l.read, l.found, l.stages, l.iterations = 0, nil, 0, 0
	}
	whole := min(size, l.read+stepsRead)
	err = l.readOn(io.NewSectionReader(f, l.read, whole-l.read))
	out = slices.Clone(l.found)
	l.mu.Unlock()
	draw(out, r.Started, end)
	return out, whole < size, err
}

// readOn reads the log from where the last read ended. A line without a line end is still being written. The caller holds mu.
func (l *stepLog) readOn(from io.Reader) error {
	lines := bufio.NewReaderSize(from, stepsBuffer)
	for long := false; ; {
		text, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			l.read, long = l.read+int64(len(text)), true
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if l.read += int64(len(text)); !long && isStep(text) {
			l.add(text)
		}
		long = false
	}
}

// isStep recognises the lines of steps without decoding them. In an event's JSON the kind comes before any untrusted text.
func isStep(text []byte) bool {
	const kind = `"kind":"`
	n := bytes.Index(text, []byte(kind))
	if n < 0 {
		return false
	}
	text = text[n+len(kind):]
	return bytes.HasPrefix(text, []byte(journal.EventStage+`"`)) || bytes.HasPrefix(text, []byte(journal.EventIteration+`"`))
}

// add records the step of a line. The caller holds mu.
func (l *stepLog) add(text []byte) {
	e, ok := event(text)
	switch {
	case !ok:
	case e.Kind == journal.EventStage && e.Stage != journal.StageEnd && l.stages < stepsLimit:
		l.stages++
		l.found = append(l.found, step{Name: string(e.Stage), Began: e.Time})
	case e.Kind == journal.EventIteration && l.iterations < stepsLimit:
		l.iterations++
		l.found = append(l.found, step{Name: "iteration " + count(int64(e.Iteration)), Sub: true, Began: e.Time})
	}
}

// draw computes the duration and position of steps.
func draw(list []step, began, end time.Time) {
	whole := max(1, end.Sub(began))
	for i := range list {
		s := &list[i]
		until := end
		for _, later := range list[i+1:] {
			if !later.Sub || s.Sub {
				until = later.Began
				break
			}
		}
		s.Took, s.After = max(0, until.Sub(s.Began)), max(0, s.Began.Sub(began))
		s.X = int(1000 * s.After / whole)
		s.Len = max(2, int(1000*s.Took/whole))
		s.X = min(s.X, 1000-min(s.Len, 1000))
	}
}
