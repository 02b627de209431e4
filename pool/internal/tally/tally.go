// Package tally converts between the journal's tally of an issue's runs and the record in a claim, which other machines
// read.
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

// ToRecord converts a tally to a claim's record.
func ToRecord(t journal.Tally) worktree.ClaimRecord {
	r := worktree.ClaimRecord{
		Run: t.Run, Host: t.Host, Outcome: string(t.Outcome), Hash: t.Hash, Tip: t.Tip, At: t.At, Runs: t.Runs,
		RetryAt: t.RetryAt, Attempts: t.Attempts, Failures: t.Failures, Rounds: t.Rounds, Commands: t.Commands, Stopped: t.Stopped,
	}
	if t.Asked != nil {
		r.Asked, _ = json.Marshal(t.Asked) // cannot fail: it only has texts, times and booleans, like Parked
	}
	if len(t.Parked) > 0 {
		r.Parked, _ = json.Marshal(t.Parked)
	}
	return Spending(r, t)
}

// Spending returns the claim's record with the usage in the tally.
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

// AfterRun returns the claim's record after a run; known is the present record. A run that has changed nothing keeps the
// checked commits for the next one.
func AfterRun(known worktree.ClaimRecord, run journal.Record) worktree.ClaimRecord {
	r := ToRecord(run.Tally().With(FromRecord(known)))
	if v := run.Verdict.Outcome; v.Unavailable() || v == journal.Interrupted {
		r.Passed = known.Passed
	}
	return r
}

// AfterPush returns the claim's record after a run has pushed its commits and before its end. Commits that a review has
// refused do not count as checked: another review might accept them.
func AfterPush(known worktree.ClaimRecord, run journal.Record) worktree.ClaimRecord {
	known.Passed = nil
	if !run.Verdict.Draft() {
		known.Passed = &claim.PushedCommits{Run: run.ID, Hash: run.Run.Hash, Tip: run.Tip, Answers: run.AnswersUntil}
		if asked := run.Earlier.Asked; asked != nil {
			known.Passed.Asked = asked.ID
		}
	}
	return known
}

// FromRecord converts a claim's record to a tally.
func FromRecord(r worktree.ClaimRecord) journal.Tally {
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

// Newest returns the tally of an issue's runs, by this host's journal or by the claim, whichever includes the later run.
func Newest(last journal.Record, known worktree.ClaimRecord) journal.Tally {
	here, shared := last.Tally(), FromRecord(known)
	lost := last.Elsewhere && (shared.Run != "" || shared.Open != nil) // at its end the run had no claim that could count it
	if here.Run != shared.Run && here.IsNewer(shared) && !lost {
		return here.WithOpen(shared).With(shared)
	}
	return shared.With(here)
}

// BeforeDeadRun returns the tally of the runs before a dead one that is now being completed: others may have worked the issue since,
// as its claim shows.
func BeforeDeadRun(rec journal.Record, known worktree.ClaimRecord) journal.Tally {
	shared, earlier := FromRecord(known), rec.Earlier
	again := shared.Asked != nil && !slices.Contains(earlier.Commands, shared.Asked.ID) // then the counts since the request are valid, without this run
	if !again && shared.Run != rec.ID && shared.Run != earlier.Run && shared.IsNewer(earlier) {
		return shared
	}
	return earlier.WithOpen(shared)
}

// AsksForNewWork reports whether a person has asked for new work, and not only for another attempt. asked may be nil.
func AsksForNewWork(asked *journal.Asked, known worktree.ClaimRecord) bool {
	return asked != nil && (asked.Fresh || asked.Text != "") && (known.Passed == nil || known.Passed.Asked != asked.ID)
}

// Unpublished returns the run whose commits for the issue with this hash need no more work by an agent and are not all
// published, or nil. These commits have passed, or their checks were cut short, and they answer comments on the request up
// to upTo (zero: none). If the run is of another machine, which died after the push, only the tip is known.
func Unpublished(runs journal.History, known worktree.ClaimRecord, hash string, upTo time.Time) *journal.Record {
	last, _ := runs.Last()
	switch p := known.Passed; {
	case p != nil && p.Hash == hash && !upTo.After(p.Answers):
		rec := journal.Record{Run: journal.Run{ID: p.Run}}
		rec.Tip, rec.Facts.End = p.Tip, loop.EndDone // Facts.Tip stays empty: no gate has passed on it here
		return &rec
	case last.Hash != hash, upTo.After(last.AnswersUntil):
	case last.Verdict.Reason.Code == journal.ReasonPublish:
		return &last
	case slices.Contains([]journal.Outcome{journal.Interrupted, journal.EnvironmentUnavailable}, last.Verdict.Outcome) &&
		last.Verdict.Reason.Code != journal.ReasonWorktreeLost && last.Facts.SignalTip != "" && last.Facts.SignalTip == last.Tip && last.WIP == "":
		f := &last.Facts
		f.End, f.Tip, f.Gate, f.GateRan = loop.EndDone, "", nil, false // no gate has passed on it
		return &last
	}
	return nil
}

// Approved reports whether title and body are those that an earlier run was allowed to work from. It is no longer possible
// to tell who has edited them since, because the label is gone.
func Approved(issue tracker.Issue, runs journal.History, claim *worktree.Claim) bool {
	before := claim.Record().Hash // hash of another host's run, if this host has none
	for _, r := range runs {
		if !r.Ended.IsZero() && r.Hash != "" {
			before = r.Hash
		}
	}
	return before != "" && strings.HasPrefix(before, issue.TextHash())
}

// Overtaken reports whether another run has had the issue since, so that the rest of rec's report is outdated. It may also
// have been reported on behalf of rec; then told is the outcome. Without a claim the answer is unknown.
func Overtaken(rec journal.Record, claim *worktree.Claim) (told journal.Outcome, over bool) {
	if claim == nil {
		return "", false
	}
	d := claim.Record()
	own, later := d.Run == rec.ID, FromRecord(d).IsNewer(rec.Earlier)
	if rec.Stage == journal.StageClaim { // its earlier runs are not counted yet
		later = d.At.After(rec.Started)
	}
	if own && d.Finished {
		told = journal.Outcome(d.Outcome)
		if !slices.Contains(journal.Outcomes(), told) || told == journal.Succeeded && rec.Stage.Before(journal.StageVerify) {
			told = "" // anybody with push access can have written it
		}
		return told, true
	}
	return "", later && (d.Finished || d.Pending != nil && !own)
}

// Held reports whether somebody works the issue, as far as known.
func Held(c worktree.ClaimState) bool { return !c.Gone && c.Holder.Run != "" }

// Answered returns the time up to which pushed runs answer comments on the issue's request; zero if unknown. A run answers
// the comments that it was told of. Of another host's run only its end is known.
func Answered(runs journal.History, elsewhere worktree.ClaimRecord) (at time.Time) {
	for _, r := range runs {
		if r.ID == elsewhere.Run {
			elsewhere = worktree.ClaimRecord{}
		}
		told := r.AnswersUntil
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
