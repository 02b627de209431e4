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

// The bounds of a timeline and of what is known of logs.
const (
	stepsLimit  = 200     // iterations of a run, and stages
	stepsRead   = 1 << 30 // bytes of a log read for one page
	stepsLogs   = 64      // logs that are known
	stepsBuffer = 1 << 20 // bytes; a longer line is no step
)

// step is a stage or an iteration of a run's timeline.
type step struct {
	Name   string
	Sub    bool // part of the stage above
	Began  time.Time
	After  time.Duration // since the run began
	Took   time.Duration
	X, Len int // in thousandths of the run
}

// stepIndex knows when the steps of the runs began whose pages were looked at last. Of a log that has grown only what is new is
// read. It is safe for concurrent use.
type stepIndex struct {
	mu    sync.Mutex
	logs  map[string]*stepLog // guarded by mu; by folder
	order []string            // guarded by mu; of logs, the latest last
}

// stepLog is what is known of one log.
type stepLog struct {
	mu                 sync.Mutex
	read               int64  // guarded by mu; up to where the log was read
	found              []step // guarded by mu
	stages, iterations int    // guarded by mu
}

// log returns what is known of the log in a folder.
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

// of finds when stages and iterations of a run began. cut says that the log was too long to find all of them.
func (x *stepIndex) of(r journal.Record, end time.Time) (out []step, cut bool, err error) {
	f, size, err := openLog(r.Dir, eventsFile)
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

// readOn reads the lines of a log from where it was read on. A line without an end is still being written. mu is held.
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

// isStep tells most lines apart without decoding them. The kind comes before any text of others.
func isStep(text []byte) bool {
	const kind = `"kind":"`
	n := bytes.Index(text, []byte(kind))
	if n < 0 {
		return false
	}
	text = text[n+len(kind):]
	return bytes.HasPrefix(text, []byte(journal.EventStage+`"`)) || bytes.HasPrefix(text, []byte(journal.EventIteration+`"`))
}

// add notes the step that a line tells of. mu is held.
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

// draw says how long steps took, and where on a line they stand.
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
