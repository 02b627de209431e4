// Package tally translates between what the journal knows of an issue's runs and what a claim tells other machines of them.
package tally

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/claim"
)

// Record is a tally for other machines.
func Record(t journal.Tally) worktree.ClaimRecord {
	r := worktree.ClaimRecord{
		Run: t.Run, Host: t.Host, Outcome: string(t.Outcome), Hash: t.Hash, Tip: t.Tip, At: t.At, Runs: t.Runs,
		RetryAt: t.RetryAt, Attempts: t.Attempts, Failures: t.Failures, Rounds: t.Rounds, Commands: t.Commands, Stopped: t.Stopped,
	}
	if t.Asked != nil {
		r.Asked, _ = json.Marshal(t.Asked) // it has texts, times and truth values only, like what is parked
	}
	if len(t.Parked) > 0 {
		r.Parked, _ = json.Marshal(t.Parked)
	}
	return Spending(r, t)
}

// Spending is what a claim says once its issue's runs have spent what the tally says.
func Spending(r worktree.ClaimRecord, t journal.Tally) worktree.ClaimRecord {
	r.Spend, r.Open = claim.Spend(t.Spent), nil
	for run, used := range t.Open {
		if r.Open == nil {
			r.Open = map[string]claim.Spend{}
		}
		r.Open[run] = claim.Spend(used)
	}
	return r
}

// Left is what stays on the claim after a run; known is what it has said. A run that has changed nothing leaves to the next one
// what has passed.
func Left(known worktree.ClaimRecord, run journal.Record) worktree.ClaimRecord {
	r := Record(run.Tally().With(Of(known)))
	if v := run.Verdict.Outcome; v.Unavailable() || v == journal.Interrupted {
		r.Passed = known.Passed
	}
	return r
}

// Pushed is what a claim says once a run has pushed its commits, and has not ended. Commits that a review has refused have not
// passed: another review of them might accept.
func Pushed(known worktree.ClaimRecord, run journal.Record) worktree.ClaimRecord {
	known.Passed = nil
	if !run.Verdict.Draft() {
		known.Passed = &claim.Passed{Run: run.ID, Hash: run.Run.Hash, Tip: run.Tip, Answers: run.Answers}
		if asked := run.Earlier.Asked; asked != nil {
			known.Passed.Asked = asked.ID
		}
	}
	return known
}

// Of is what a claim knows of an issue's runs.
func Of(r worktree.ClaimRecord) journal.Tally {
	t := journal.Tally{
		Run:      r.Run,
		Host:     r.Host,
		Outcome:  journal.Outcome(r.Outcome),
		Hash:     r.Hash,
		Tip:      r.Tip,
		At:       r.At,
		Runs:     r.Runs,
		RetryAt:  r.RetryAt,
		Final:    r.Finished,
		Attempts: r.Attempts,
		Failures: r.Failures,
		Rounds:   r.Rounds,
		Spent:    agents.Usage(r.Spend),
		Commands: r.Commands,
		Stopped:  r.Stopped,
	}
	if json.Unmarshal(r.Parked, &t.Parked) != nil {
		t.Parked = nil
	}
	for run, used := range r.Open {
		if t.Open == nil {
			t.Open = map[string]agents.Usage{}
		}
		t.Open[run] = agents.Usage(used)
	}
	var asked journal.Asked
	if json.Unmarshal(r.Asked, &asked) == nil {
		t.Asked = &asked
	}
	return t
}

// Newest is what an issue's runs come to, by this host's journal or by the claim: whichever knows of a later run.
func Newest(last journal.Record, known worktree.ClaimRecord) journal.Tally {
	here, shared := last.Tally(), Of(known)
	lost := last.Elsewhere && (shared.Run != "" || shared.Open != nil) // by its end it had no claim to count it
	if here.Run != shared.Run && here.Later(shared) && !lost {
		return here.WithOpen(shared).With(shared)
	}
	return shared.With(here)
}

// Onto is what the runs before a dead one come to when that is brought to its end: others may have worked the issue since,
// as its claim says.
func Onto(rec journal.Record, known worktree.ClaimRecord) journal.Tally {
	shared, earlier := Of(known), rec.Earlier
	again := shared.Asked != nil && !slices.Contains(earlier.Commands, shared.Asked.ID) // then the counts since stand, without this run
	if !again && shared.Run != rec.ID && shared.Run != earlier.Run && shared.Later(earlier) {
		return shared
	}
	return earlier.WithOpen(shared)
}

// Afresh reports that a person has asked for new work, and not only for another attempt. asked may be nil.
func Afresh(asked *journal.Asked, known worktree.ClaimRecord) bool {
	return asked != nil && (asked.Fresh || asked.Text != "") && (known.Passed == nil || known.Passed.Asked != asked.ID)
}

// Unpublished is the run whose commits for the issue with this hash need no agent any more, and are not all published; nil: there
// is none. They have passed, or their checks were cut short, and they answer what people said on the request up to then (zero:
// nothing). Of a run of another machine, which has died after the push, only the tip is known.
func Unpublished(runs journal.History, known worktree.ClaimRecord, hash string, upTo time.Time) *journal.Record {
	last, _ := runs.Last()
	switch p := known.Passed; {
	case p != nil && p.Hash == hash && !upTo.After(p.Answers):
		rec := journal.Record{Run: journal.Run{ID: p.Run}}
		rec.Tip, rec.Facts.End = p.Tip, loop.EndDone // without Facts.Tip: no gate has passed on it here
		return &rec
	case last.Hash != hash, upTo.After(last.Answers):
	case last.Verdict.Reason.Code == journal.ReasonPublish:
		return &last
	case slices.Contains([]journal.Outcome{journal.Interrupted, journal.EnvironmentUnavailable}, last.Verdict.Outcome) &&
		last.Verdict.Reason.Code != journal.ReasonWorktreeLost && last.Facts.Said != "" && last.Facts.Said == last.Tip && last.WIP == "":
		f := &last.Facts
		f.End, f.Tip, f.Gate, f.GateRan = loop.EndDone, "", nil, false // no gate has passed on it
		return &last
	}
	return nil
}

// Approved reports whether title and body are what an earlier run was allowed to work from. Nobody can tell any more
// who edited them since: the label is gone.
func Approved(issue tracker.Issue, runs journal.History, claim *worktree.Claim) bool {
	before := claim.Record().Hash // of another host, if this one has none
	for _, r := range runs {
		if !r.Ended.IsZero() && r.Hash != "" {
			before = r.Hash
		}
	}
	return before != "" && strings.HasPrefix(before, issue.TextHash())
}

// Overtaken reports that another run has had the issue since: what rec has left to tell is not true any more, or has
// been told on its behalf: then told is the outcome. Without a claim it is not known.
func Overtaken(rec journal.Record, claim *worktree.Claim) (told journal.Outcome, over bool) {
	if claim == nil {
		return "", false
	}
	d := claim.Record()
	own, later := d.Run == rec.ID, Of(d).Later(rec.Earlier)
	if rec.Stage == journal.StageClaim { // its earlier runs are not counted yet
		later = d.At.After(rec.Started)
	}
	if own && d.Finished {
		told = journal.Outcome(d.Outcome)
		if !slices.Contains(journal.Outcomes(), told) || told == journal.Succeeded && rec.Stage.Before(journal.StageVerify) {
			told = "" // whoever may push can have written it
		}
		return told, true
	}
	return "", later && (d.Finished || d.Pending != nil && !own)
}

// Held reports that somebody works the issue, as far as can be told.
func Held(c worktree.ClaimState) bool { return !c.Gone && c.Holder.Run != "" }

// Answered is the time up to which pushed runs answer what people said on the issue's request; zero when none is known. A
// run answers what it was told of. Of another host's run only its end is known.
func Answered(runs journal.History, elsewhere worktree.ClaimRecord) (at time.Time) {
	for _, r := range runs {
		if r.ID == elsewhere.Run {
			elsewhere = worktree.ClaimRecord{}
		}
		told := r.Answers
		if told.IsZero() {
			told = r.Started
		}
		if r.Published != "" && told.After(at) {
			at = told
		}
	}
	if elsewhere.Tip != "" && elsewhere.At.After(at) {
		at = elsewhere.At
	}
	return at
}
