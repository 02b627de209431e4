package pool

import (
	"cmp"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/tracker"
)

// isAway notes that tracker or remote cannot be used. That ends a sweep only when nothing is running: runs may take hours, and
// an outage seconds. While they go on it is tried again, with pauses of up to 15 minutes.
func (s *sweep) isAway(err error) {
	if s.running == 0 {
		s.summary.Unavailable = err
		return
	}
	known := s.away != nil
	if known && time.Now().Before(s.again) {
		return // several runs have met the same outage
	}
	s.away, s.queue, s.pause = err, nil, min(max(2*s.pause, s.pool.c.Refresh), 15*time.Minute)
	s.again = time.Now().Add(s.pause)
	if !known {
		s.tell(err)
	}
}

// tell says why no run is started for now.
func (s *sweep) tell(why error) {
	s.show()
	s.pool.emit(journal.Event{Kind: journal.EventProblem, Text: "no new run is started for now: " + why.Error()})
}

// show is for Pool.Held.
func (s *sweep) show() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = cmp.Or(s.summary.Unavailable, s.away, s.short)
}

// resumed notes what has become of a run that had met an outage at its end. A longer one has it tried again.
func (s *sweep) resumed(issue tracker.Issue, r Recovered, err error) {
	s.started--
	is := func(i tracker.Issue) bool { return i.Key == issue.Key }
	ended := slices.Concat(r.Finished, r.Interrupted)
	s.summary.Runs = slices.DeleteFunc(s.summary.Runs, func(b journal.Record) bool {
		return slices.ContainsFunc(ended, func(e journal.Record) bool { return e.ID == b.ID })
	})
	s.summary.Runs = append(s.summary.Runs, ended...)
	switch {
	case publish.Outage(r.Unavailable) && s.summary.Unavailable == nil:
		s.isAway(r.Unavailable)
		return
	case err != nil:
		s.pool.emit(journal.Event{Kind: journal.EventProblem, Key: issue.Key, Text: "recover " + issue.Key + ": " + err.Error()})
	case r.Unavailable != nil && s.summary.Unavailable == nil:
		s.summary.Unavailable = r.Unavailable
	}
	s.summary.Broken = append(s.summary.Broken, r.Broken...)
	s.stale = s.stale || s.left()
	s.unended = slices.DeleteFunc(s.unended, is)
	if len(r.Broken) == 0 {
		s.pause = 0
	}
}

// left reports whether issues may be left to try. Of named ones none is once all were tried.
func (s *sweep) left() bool {
	return len(s.keys) == 0 || len(s.unended) > 0 || slices.ContainsFunc(s.keys, func(key string) bool { return !s.tried[key] })
}

// isGone notes that a named issue has left the backlog since the sweep began. The others are listed without it.
func (s *sweep) isGone(key string) {
	if !s.tried[key] {
		s.summary.Skipped = append(s.summary.Skipped, backlog.Skipped{Issue: tracker.Issue{Key: key}, Skip: journal.Skip{Code: journal.SkipUnlisted}})
		s.tried[key] = true
	}
	if len(s.keys) > 1 { // none would mean all
		s.keys, s.stale = slices.DeleteFunc(slices.Clone(s.keys), func(k string) bool { return k == key }), true
	}
}
