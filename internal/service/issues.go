package service

import (
	"cmp"
	"os"
	"slices"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
)

// IssueState is the state of an open issue.
type IssueState string

// The states of an issue.
const (
	IssueRunning    IssueState = "running"
	IssueReady      IssueState = "ready"   // will start when a slot is free
	IssueWaiting    IssueState = "waiting" // will continue without a person
	IssueNeedsHuman IssueState = "needs-human"
	IssueNeedsInfo  IssueState = "needs-info"
	IssueLeftOut    IssueState = "left-out" // does not qualify
)

// Issue is an open issue with its state.
type Issue struct {
	tracker.Issue
	State  IssueState
	Code   string // kind of the reason; new kinds may be added
	Reason string // why it is not being worked; untrusted text
	Run    string // id of the active run, of the run that is the reason, or of the latest run of an issue that is ready or does not qualify
	Where  string // for finished work the URL of its request, or its branch; empty: unknown
}

// Retries reports whether a retry makes sense: the issue is not ready anyway, and if it does not qualify, it was worked
// before, for example until a person stopped it.
func (i Issue) Retries() bool {
	return i.State != IssueReady && (i.Code != string(journal.SkipUnfit) || i.Run != "")
}

// Fresh reports whether it makes sense to work the issue again from the base, even if its next run would continue earlier commits.
func (i Issue) Fresh() bool { return i.Retries() || i.State == IssueReady && i.Run != "" }

// Issues returns the backlog in order: running issues, ready ones in the order in which they will start, then the rest.
func (b Board) Issues(running []pool.Running) []Issue {
	var out []Issue
	seen := map[string]bool{}
	add := func(i tracker.Issue, state IssueState, code, reason, run string) {
		if !seen[i.Key] {
			seen[i.Key] = true
			out = append(out, Issue{Issue: i, State: state, Code: code, Reason: reason, Run: run})
		}
	}
	known, later := slices.Clone(b.Work), slices.Concat(b.WaitingForRuns, b.Skipped)
	for _, r := range b.Review {
		known = append(known, r.Issue)
	}
	for _, s := range later {
		known = append(known, s.Issue)
	}
	for _, r := range running {
		issue := tracker.Issue{Key: r.Key, Title: r.Title}
		if n := slices.IndexFunc(known, func(i tracker.Issue) bool { return i.Key == r.Key }); n >= 0 {
			issue = known[n]
		}
		add(issue, IssueRunning, "", "", r.Run)
	}
	for _, f := range b.FollowUp {
		add(f.Issue, IssueReady, "follow-up", string(f.Reason), "")
	}
	for _, i := range b.Work {
		add(i, IssueReady, "", "", b.Ran[i.Key])
	}
	for _, f := range b.HandOver {
		add(f.Issue, IssueNeedsHuman, "rounds", string(f.Reason), "")
	}
	for _, r := range b.Review {
		if !seen[r.Key] {
			add(r.Issue, IssueNeedsHuman, CodeInReview, r.reason(), r.Run)
			out[len(out)-1].Where = r.Where
		}
	}
	for _, s := range later {
		state, reason := stateOfSkip(s.Skip), cmp.Or(b.Samples[s.Issue.Key], report.Skip(s.Skip))
		if b.waitsForItself(s.Issue.Key) {
			state = IssueLeftOut
		}
		if said := b.Said[s.Issue.Key]; said != "" {
			reason += "; " + said
		}
		add(s.Issue, state, string(s.Skip.Code), reason, s.Skip.Run)
	}
	return out
}

// waitsForItself reports whether the issue is in a cycle of issues that block each other, so that none of them can start.
func (b Board) waitsForItself(key string) bool {
	return slices.ContainsFunc(b.Cycles, func(c tracker.Cycle) bool { return slices.Contains(c, key) })
}

// CodeInReview is the code of an issue whose finished work waits to be merged.
const CodeInReview = "in-review"

func (r Reviewed) reason() string {
	if r.Again != "" {
		return "its request was closed without a merge: " + r.Where +
			"; close the issue, or add the label " + r.Again + " to have it worked again"
	}
	if r.Gone {
		return "its request is no longer open: " + r.Where + "; if it was merged, close the issue, " +
			"or let the next sweep close it, which it does once the base has every change of the branch"
	}
	reason := "is finished and waits to be merged"
	if r.Where != "" {
		reason += ": " + r.Where
	}
	if r.Merge != "" {
		reason += "; `" + r.Merge + "` merges it"
	}
	return reason
}

// Wrong returns the problems of the read in one line each.
func (b Board) Wrong() []string {
	out := []string{}
	for _, p := range b.Problems {
		out = append(out, p.Error())
	}
	if b.Problem != "" {
		out = append(out, b.Problem)
	}
	return out
}

// stateOfSkip returns the state of a skipped issue.
func stateOfSkip(s journal.Skip) IssueState {
	switch s.Code {
	case journal.SkipUnfit:
		if s.Unfit.Code == tracker.UnfitBlocked {
			return IssueWaiting
		}
	case journal.SkipHuman:
		return IssueNeedsHuman
	case journal.SkipAnswer:
		return IssueNeedsInfo
	case journal.SkipRetry, journal.SkipClaimed, journal.SkipUnreported, journal.SkipOverlap,
		journal.SkipUnmerged, journal.SkipOpen, journal.SkipBusy, journal.SkipCap, journal.SkipHeld:
		return IssueWaiting
	}
	return IssueLeftOut
}

// RunState returns the state of a run: running, died, unfinished, or its outcome. The record must come from Service.Runs.
func RunState(r journal.Record) string {
	switch {
	case !r.Ended.IsZero():
		return string(r.Verdict.Outcome)
	case r.PID == 0:
		return "unfinished"
	case isForeign(r) || proc.Alive(r.PID, r.Process):
		return "running"
	}
	return "died"
}

// isForeign reports whether the record is an open one of another host, whose processes cannot be checked.
func isForeign(r journal.Record) bool { return r.Ended.IsZero() && Elsewhere(r) != "" }

// Elsewhere returns the host that has a run's logs, or "" for this host.
func Elsewhere(r journal.Record) string {
	if here, err := os.Hostname(); err != nil || r.Host == here {
		return ""
	}
	return r.Host
}

// clearRemotePIDs clears the PID in open records of other hosts that no longer work on them.
func (p *project) clearRemotePIDs(list []journal.Record) []journal.Record {
	p.mu.Lock()
	elsewhere := p.remoteRuns
	p.mu.Unlock()
	for i, r := range list {
		if isForeign(r) && !slices.ContainsFunc(elsewhere, func(e journal.Record) bool { return e.ID == r.ID }) {
			list[i].PID = 0
		}
	}
	return list
}
