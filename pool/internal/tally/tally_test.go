package tally_test

import (
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/internal/tally"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/claim"
)

var began = time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)

// run returns a run of an issue; outcome is empty while it is in progress.
func run(id string, earlier journal.Tally, used int64, outcome journal.Outcome) journal.Record {
	r := journal.Record{Run: journal.Run{ID: id, Earlier: earlier, Started: began}}
	r.Facts.Usage, r.Facts.CompletedAt, r.Verdict.Outcome = agents.Usage{Input: used}, began.Add(time.Duration(used)*time.Minute), outcome
	r.Verdict.Final, r.Verdict.Counted = outcome == journal.OverBudget, outcome.UsesAttempt()
	return r
}

// A dead run that is completed counts once, in addition to the runs of its issue since then.
func TestDeadRunCountsOnTopOfOthers(t *testing.T) {
	t.Parallel()
	person := journal.Asked{ID: "c1"}
	final := run("f", journal.Tally{}, 100, journal.OverBudget).Tally()
	for name, c := range map[string]struct {
		before          journal.Tally                       // earlier tally of the dead run
		since           func(t journal.Tally) journal.Tally // changes on other machines
		spent, attempts int64
	}{
		"nobody":          {journal.Tally{}, func(t journal.Tally) journal.Tally { return t }, 5, 0},
		"one that died":   {journal.Tally{}, func(t journal.Tally) journal.Tally { return run("b", t, 3, "").Tally() }, 8, 0},
		"two that died":   {journal.Tally{}, func(t journal.Tally) journal.Tally { return run("c", run("b", t, 3, "").Tally(), 2, "").Tally() }, 10, 0},
		"one that failed": {journal.Tally{}, func(t journal.Tally) journal.Tally { return run("b", t, 3, journal.Failed).Tally() }, 8, 1},
		"failed and died": {journal.Tally{}, func(t journal.Tally) journal.Tally {
			return run("c", run("b", t, 3, journal.Failed).Tally(), 2, "").Tally()
		}, 10, 1},
		"started again before":  {final, func(t journal.Tally) journal.Tally { return run("b", t, 3, "").Tally() }, 8, 0},
		"started again since":   {journal.Tally{}, func(t journal.Tally) journal.Tally { return t.Restart(person) }, 0, 0},
		"one died after that":   {journal.Tally{}, func(t journal.Tally) journal.Tally { return run("b", t.Restart(person), 3, "").Tally() }, 3, 0},
		"one failed after that": {journal.Tally{}, func(t journal.Tally) journal.Tally { return run("b", t.Restart(person), 3, journal.Failed).Tally() }, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claimed := run("a", c.before, 4, "").Tally() // only its own journal has the usage of 5
			claim := tally.ToRecord(c.since(claimed))
			claim.Finished = c.before.Final
			dead := run("a", c.before, 5, "")
			dead.Earlier = tally.BeforeDeadRun(dead, claim)
			dead.Verdict.Outcome, dead.Facts.CompletedAt = journal.Interrupted, began.Add(time.Hour)
			got := dead.Tally().With(tally.FromRecord(claim))
			if got.Spent.Input != c.spent || int64(got.Attempts) != c.attempts {
				t.Errorf("%d spent and %d attempts, want %d and %d: %+v", got.Spent.Input, got.Attempts, c.spent, c.attempts, got)
			}
			written := tally.ToRecord(got)
			dead.Earlier = tally.BeforeDeadRun(dead, written) // the claim was written, but not the journal
			if second := dead.Tally().With(tally.FromRecord(written)); second.Spent != got.Spent {
				t.Errorf("settled twice: %+v, want %+v", second.Spent, got.Spent)
			}
			next := tally.Newest(dead, written)
			if s := run("z", next, 0, "").Tally().Spent; s != got.Next().Spent {
				t.Errorf("the next run begins with %+v, want %+v", s, got.Next().Spent)
			}
		})
	}
}

// A run that had lost its claim when it ended does not replace what others have done meanwhile.
func TestRunThatEndedWithoutItsClaim(t *testing.T) {
	t.Parallel()
	claim := tally.ToRecord(run("b", run("a", journal.Tally{}, 4, "").Tally(), 3, "").Tally())
	dead := run("a", journal.Tally{}, 5, journal.Interrupted)
	dead.Elsewhere = true
	if got := tally.Newest(dead, claim).Spent.Input; got != 7 {
		t.Errorf("%d spent, want what the claim says", got)
	}
	if got := tally.Newest(dead, worktree.ClaimRecord{}).Spent.Input; got != 5 {
		t.Errorf("%d spent, want what the journal says: no claim says anything", got)
	}
}

// Commits need no agent only while they match the text and answer all comments on the request.
func TestUnpublished(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	one := func(outcome journal.Outcome, code journal.ReasonCode, change func(*journal.Record)) journal.History {
		r := journal.Record{Run: journal.Run{ID: "r", Hash: "h", AnswersUntil: at}}
		r.Ended, r.Tip, r.Facts.SignalTip, r.Facts.Tip, r.Facts.GateRan = at, "t", "t", "t", true
		r.Verdict = journal.Verdict{Outcome: outcome, Reason: journal.Reason{Code: code}}
		if change != nil {
			change(&r)
		}
		return journal.History{r}
	}
	passed := worktree.ClaimRecord{Passed: &claim.PushedCommits{Run: "p", Hash: "h", Tip: "pt", Answers: at}}
	for name, test := range map[string]struct {
		runs  journal.History
		known worktree.ClaimRecord
		hash  string
		upTo  time.Time
		want  string // the tip
	}{
		"none":                      {hash: "h"},
		"not published":             {runs: one(journal.Failed, journal.ReasonPublish, nil), hash: "h", upTo: at, want: "t"},
		"not published, reviewed":   {runs: one(journal.Failed, journal.ReasonPublish, nil), hash: "h", upTo: at.Add(1)},
		"not published, edited":     {runs: one(journal.Failed, journal.ReasonPublish, nil), hash: "other"},
		"cut short":                 {runs: one(journal.Interrupted, journal.ReasonCrash, nil), hash: "h", upTo: at, want: "t"},
		"cut short, reviewed":       {runs: one(journal.Interrupted, journal.ReasonCrash, nil), hash: "h", upTo: at.Add(1)},
		"cut short, edited":         {runs: one(journal.Interrupted, journal.ReasonCrash, nil), hash: "other"},
		"cut short, worktree lost":  {runs: one(journal.Interrupted, journal.ReasonWorktreeLost, nil), hash: "h"},
		"cut short while it worked": {runs: one(journal.Interrupted, journal.ReasonCrash, func(r *journal.Record) { r.Facts.SignalTip = "" }), hash: "h"},
		"cut short, and went on":    {runs: one(journal.Interrupted, journal.ReasonCrash, func(r *journal.Record) { r.Tip = "later" }), hash: "h"},
		"cut short, with changes":   {runs: one(journal.Interrupted, journal.ReasonCrash, func(r *journal.Record) { r.WIP = "w" }), hash: "h"},
		"without its engine":        {runs: one(journal.EnvironmentUnavailable, journal.ReasonMachine, nil), hash: "h", upTo: at, want: "t"},
		"its gate failed":           {runs: one(journal.GateFailed, "", nil), hash: "h"},
		"pushed elsewhere":          {known: passed, hash: "h", upTo: at, want: "pt"},
		"pushed elsewhere, newer":   {runs: one(journal.Failed, journal.ReasonPublish, nil), known: passed, hash: "h", want: "pt"},
		"pushed elsewhere, review":  {known: passed, hash: "h", upTo: at.Add(1)},
		"pushed elsewhere, edited":  {known: passed, hash: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tally.Unpublished(test.runs, test.known, test.hash, test.upTo)
			if (got == nil) != (test.want == "") || got != nil && got.Tip != test.want {
				t.Fatalf("%+v, want the tip %q", got, test.want)
			}
			if got != nil && got.Verdict.Reason.Code != journal.ReasonPublish && (got.Facts.Tip != "" || got.Facts.GateRan || got.Facts.End != loop.EndDone) {
				t.Errorf("the gate need not run on it: %+v", got.Facts)
			}
		})
	}
}

// The clocks of machines differ: the later of two tallies is the one with more runs, whatever its time.
func TestClocksDiffer(t *testing.T) {
	t.Parallel()
	ahead := run("a", journal.Tally{}, 1, journal.Failed)
	ahead.Facts.CompletedAt = began.Add(24 * time.Hour)
	after := run("b", ahead.Tally(), 2, journal.OverBudget) // on a machine with a correct clock
	written := tally.ToRecord(after.Tally())
	written.Finished = true
	if got := tally.Newest(ahead, written); got.Run != "b" || !got.Final {
		t.Errorf("after a later run: %+v", got)
	}
	if got := tally.Newest(after, tally.ToRecord(ahead.Tally())); got.Run != "b" {
		t.Errorf("before the later run is written: %+v", got)
	}
	dead := run("c", ahead.Tally(), 0, "")
	if got := tally.BeforeDeadRun(dead, written); got.Run != "b" {
		t.Errorf("onto a later run: %+v", got)
	}
}
