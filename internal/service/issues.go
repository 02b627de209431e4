package service

import (
	"os"
	"slices"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
)

// IssueState is where an open issue stands.
type IssueState string

// The states of an issue.
const (
	IssueRunning    IssueState = "running"
	IssueReady      IssueState = "ready"   // the next free slot takes it
	IssueWaiting    IssueState = "waiting" // it goes on by itself
	IssueNeedsHuman IssueState = "needs-human"
	IssueNeedsInfo  IssueState = "needs-info"
	IssueLeftOut    IssueState = "left-out" // it does not qualify
)

// Issue is an open issue and where it stands.
type Issue struct {
	tracker.Issue
	State  IssueState
	Code   string // the kind of reason; the set is open
	Reason string // why it is not worked; may be hostile
	Run    string // the run that is on, that is the reason, or the latest of what does not qualify
	Where  string // of finished work: its request, or its branch; empty: not known
}

// Retries reports that it makes sense to have the issue worked again: it is not worked anyway, and what does not qualify has
// been worked before, such as one that a person has stopped.
func (i Issue) Retries() bool {
	return i.State != IssueReady && (i.Code != string(journal.SkipUnfit) || i.Run != "")
}

// Issues puts a backlog in order: what is running, then what is ready in the order in which it is worked, then the rest.
func (b Board) Issues(running []pool.Running) []Issue {
	var out []Issue
	seen := map[string]bool{}
	add := func(i tracker.Issue, state IssueState, code, reason, run string) {
		if !seen[i.Key] {
			seen[i.Key] = true
			out = append(out, Issue{Issue: i, State: state, Code: code, Reason: reason, Run: run})
		}
	}
	known, later := slices.Clone(b.Work), slices.Concat(b.After, b.Skipped)
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
		add(i, IssueReady, "", "", "")
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
		state, reason := stateOfSkip(s.Skip), report.Skip(s.Skip)
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

// waitsForItself reports an issue in a ring of issues that block each other: none of them goes on by itself.
func (b Board) waitsForItself(key string) bool {
	return slices.ContainsFunc(b.Cycles, func(c tracker.Cycle) bool { return slices.Contains(c, key) })
}

// CodeInReview is the code of an issue whose work waits to be merged.
const CodeInReview = "in-review"

func (r Reviewed) reason() string {
	if r.Again != "" {
		return "its request was closed and not merged: " + r.Where +
			"; close the issue, or give it the label " + r.Again + " to have it done anew"
	}
	if r.Gone {
		return "ralph has no open request for it any more: " + r.Where + "; close the issue if that was merged, " +
			"unless the next sweep does: it does when the base has every change of the branch"
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

// Wrong lists what could not be read, in one line each.
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

// stateOfSkip is the state of an issue that is not worked now.
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
		journal.SkipUnmerged, journal.SkipOpen, journal.SkipBusy, journal.SkipCap:
		return IssueWaiting
	}
	return IssueLeftOut
}

// RunState is where a run stands: running, died, unfinished, or its outcome. The record is of Runs.
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

// isForeign reports an open record of another host, whose processes cannot be looked at.
func isForeign(r journal.Record) bool { return r.Ended.IsZero() && Elsewhere(r) != "" }

// Elsewhere is the host that has the logs of a run; empty: this one.
func Elsewhere(r journal.Record) string {
	if here, err := os.Hostname(); err != nil || r.Host == here {
		return ""
	}
	return r.Host
}

// placed takes the process out of records of other hosts that do not work them any more.
func (p *project) placed(list []journal.Record) []journal.Record {
	p.mu.Lock()
	elsewhere := p.elsewhere
	p.mu.Unlock()
	for i, r := range list {
		if isForeign(r) && !slices.ContainsFunc(elsewhere, func(e journal.Record) bool { return e.ID == r.ID }) {
			list[i].PID = 0
		}
	}
	return list
}
