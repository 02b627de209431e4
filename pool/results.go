package pool

import (
	"cmp"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
)

// addResults adds the results of the runs that have ended.
func (s *sweep) addResults() {
	s.mu.Lock()
	list := s.results
	s.results = nil
	s.mu.Unlock()
	for _, add := range list {
		add()
	}
}

// addResult adds a result to the summary. It has the backlog listed again, since issues may have waited for this one.
func (s *sweep) addResult(r *Result) {
	s.stale = s.stale || s.hasIssuesLeft() && (r.Closed || r.Skip == nil || s.ordered || s.outage != nil)
	s.summary.Runs = append(s.summary.Runs, r.Finished...)
	outage := publish.Outage(r.Unavailable)
	if outage && r.Skip == nil {
		s.unended = append(s.unended, r.Issue)
	}
	if r.Skip == nil {
		if !outage {
			s.pause = 0
		}
		s.ended[r.Issue.Key] = time.Now()
		if a := r.Record.Earlier.Asked; a != nil {
			s.asked[r.Issue.Key] = a.ID
		}
		s.summary.Runs = append(slices.DeleteFunc(s.summary.Runs, func(b journal.Record) bool { return b.Key == r.Record.Key }), r.Record)
		// After the end of early every call may fail, and a run that was stopped waits only briefly for a remote.
		if r.Deferred != nil && r.Unavailable == nil && !publish.Outage(r.Deferred) && s.call.early.Err() == nil {
			s.summary.Broken = append(s.summary.Broken, backlog.Skipped{Issue: r.Issue, Skip: brokenSkip(r.Deferred.Error())})
		}
	} else {
		s.started--
		s.leaveOut(*r, backlog.Skipped{Issue: r.Issue, Skip: *r.Skip}, outage)
	}
	switch {
	case r.Unavailable == nil || s.summary.Unavailable != nil:
	case outage:
		s.noteOutage(r.Unavailable)
	default:
		s.summary.Unavailable = r.Unavailable
		s.summary.ParkedUntil = r.Record.Verdict.RetryAt
	}
}

// leaveOut adds an issue that was not worked to the summary. An issue that met an outage is tried again with the others.
func (s *sweep) leaveOut(r Result, skipped backlog.Skipped, outage bool) {
	e := journal.Event{Kind: journal.EventSkipped, Key: r.Issue.Key, Title: r.Issue.Title, Skip: r.Skip}
	switch {
	case outage && s.running > 0 && s.summary.Unavailable == nil:
		delete(s.tried, r.Issue.Key)
		s.waiting = append(s.waiting, skipped)
		return
	case r.Unavailable != nil && cmp.Or(s.summary.Unavailable, s.outage) != nil: // the reason is reported already
		s.summary.Skipped = append(s.summary.Skipped, skipped)
		return
	case r.Err != nil:
		e.Kind = journal.EventProblem
		s.summary.Broken = append(s.summary.Broken, skipped)
	default:
		s.summary.Skipped = append(s.summary.Skipped, skipped)
	}
	s.pool.emit(e)
}

// forgetTried removes issues from tried whose runs ended at least that long ago; see Pool.SetRetryDelay.
func (s *sweep) forgetTried(after time.Duration) {
	for key, at := range s.ended {
		if after > 0 && len(s.keys) == 0 && !s.active[key] && time.Since(at) >= after {
			delete(s.tried, key)
			delete(s.ended, key)
		}
	}
}

// workedOnce returns the tried issues whose runs have ended; see backlog.Query.Ended.
func (s *sweep) workedOnce() map[string]string {
	list := map[string]string{}
	for key := range s.tried {
		if !s.active[key] {
			list[key] = s.asked[key]
		}
	}
	return list
}

// forgetAsked removes issues from tried for which a person has asked since; once for each request. Named issues are worked once.
func (s *sweep) forgetAsked(since map[string]string) {
	for key, id := range since {
		if s.asked[key] = id; len(s.keys) == 0 {
			delete(s.tried, key)
			delete(s.ended, key)
		}
	}
}
