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

// noteOutage notes that the tracker or the remote cannot be used. It ends the sweep only if no run is in progress: a run may take
// hours, an outage seconds. While runs continue, the sweep tries again, with pauses of up to 15 minutes.
func (s *sweep) noteOutage(err error) {
	if s.running == 0 {
		s.summary.Unavailable = err
		return
	}
	known := s.outage != nil
	if known && time.Now().Before(s.retryAt) {
		return // several runs have met the same outage
	}
	s.outage, s.queue, s.pause = err, nil, min(max(2*s.pause, s.pool.c.Refresh), 15*time.Minute)
	s.retryAt = time.Now().Add(s.pause)
	if !known {
		s.reportHeld(err)
	}
}

// reportHeld emits an event with the reason why no run starts for now.
func (s *sweep) reportHeld(why error) {
	s.updateHeld()
	s.pool.emit(journal.Event{Kind: journal.EventProblem, Text: "no new runs start for now: " + why.Error()})
}

// updateHeld updates the reason that Pool.PauseReason returns.
func (s *sweep) updateHeld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = cmp.Or(s.summary.Unavailable, s.outage, s.short)
}

// addRecovered adds the result of a run that was tried again after an outage at its end. If the outage lasts, the run is tried
// again later.
func (s *sweep) addRecovered(issue tracker.Issue, r Recovered, err error) {
	s.started--
	s.ended[issue.Key] = time.Now()
	is := func(i tracker.Issue) bool { return i.Key == issue.Key }
	ended := slices.Concat(r.Finished, r.Interrupted)
	s.summary.Runs = slices.DeleteFunc(s.summary.Runs, func(b journal.Record) bool {
		return slices.ContainsFunc(ended, func(e journal.Record) bool { return e.ID == b.ID })
	})
	s.summary.Runs = append(s.summary.Runs, ended...)
	switch {
	case publish.Outage(r.Unavailable) && s.summary.Unavailable == nil:
		s.noteOutage(r.Unavailable)
		return
	case err != nil:
		s.pool.emit(journal.Event{Kind: journal.EventProblem, Key: issue.Key, Text: "recover " + issue.Key + ": " + err.Error()})
	case r.Unavailable != nil && s.summary.Unavailable == nil:
		s.summary.Unavailable = r.Unavailable
	}
	s.summary.Broken = append(s.summary.Broken, r.Broken...)
	s.stale = s.stale || s.hasIssuesLeft()
	s.unended = slices.DeleteFunc(s.unended, is)
	if len(r.Broken) == 0 {
		s.pause = 0
	}
}

// hasIssuesLeft reports whether there may be issues left to try. A sweep of named issues has none once it has tried all of them.
func (s *sweep) hasIssuesLeft() bool {
	return len(s.keys) == 0 || len(s.unended) > 0 || slices.ContainsFunc(s.keys, func(key string) bool { return !s.tried[key] })
}

// noteGone notes that a named issue has left the backlog since the sweep began. The next listing leaves it out.
func (s *sweep) noteGone(key string) {
	if !s.tried[key] {
		s.summary.Skipped = append(s.summary.Skipped, backlog.Skipped{Issue: tracker.Issue{Key: key}, Skip: journal.Skip{Code: journal.SkipUnlisted}})
		s.tried[key] = true
	}
	if len(s.keys) > 1 { // an empty list would mean all issues
		s.keys, s.stale = slices.DeleteFunc(slices.Clone(s.keys), func(k string) bool { return k == key }), true
	}
}
