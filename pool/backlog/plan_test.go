package backlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// TestWhyNot checks each reason why an issue is not worked. If several apply, the first one is given.
func TestWhyNot(t *testing.T) {
	t.Parallel()
	const key = "1"
	now := time.Now()
	issue := func(labels ...string) tracker.Issue {
		return tracker.Issue{Key: key, Title: "Do it", Open: true, Labels: append([]string{"auto"}, labels...)}
	}
	claimed := func(c worktree.ClaimState) func(*view) {
		return func(v *view) { v.claims = map[string]worktree.ClaimState{key: c} }
	}
	worked := func(r journal.Tally) func(*view) { return func(v *view) { v.tally[key] = r } }
	finished := func(hash string, here bool) func(*view) {
		return func(v *view) {
			v.finished[key], v.reportedHere[key] = worktree.ClaimRecord{Run: "r", Hash: hash, Outcome: string(journal.Succeeded)}, here
		}
	}
	unlabelled := func(v *view) {
		v.last[key] = journal.Record{State: journal.State{Unlabelled: "refused", Verdict: journal.Verdict{Outcome: journal.Succeeded, Final: true}}}
	}
	held := worktree.ClaimState{Holder: worktree.Holder{Run: "r", Host: "elsewhere"}}
	hash := issue().Hash()
	shows := func(run string) tracker.Issue { i := issue(); i.Reported = &run; return i }
	stopped := func(hash string) journal.Tally {
		return journal.Tally{Run: "r2", Hash: hash, Outcome: journal.Interrupted, Stopped: true}
	}
	changed := issue()
	changed.Updated = now
	for name, test := range map[string]struct {
		issue tracker.Issue
		state func(*view)
		named bool // by a person
		want  journal.SkipCode

		readOnly bool // whether the tracker is
	}{
		"free":                                               {issue: issue()},
		"lacks the pick-up label":                            {issue: tracker.Issue{Key: key, Open: true}, want: journal.SkipUnfit},
		"has an excluded label":                              {issue: issue("wip"), want: journal.SkipUnfit},
		"in review":                                          {issue: tracker.Issue{Key: key, Open: true, Labels: []string{"in-review"}}, want: journal.SkipReview},
		"claimed":                                            {issue: issue(), state: claimed(held), want: journal.SkipClaimed},
		"claimed and named":                                  {issue: issue(), state: claimed(held), named: true, want: journal.SkipClaimed},
		"the claim's process is gone":                        {issue: issue(), state: claimed(worktree.ClaimState{Holder: held.Holder, Gone: true})},
		"an unreadable claim":                                {issue: issue(), state: claimed(worktree.ClaimState{Err: errors.New("garbled")}), want: journal.SkipBadClaim},
		"a report that is missing":                           {issue: issue(), state: claimed(worktree.ClaimState{Record: worktree.ClaimRecord{Pending: json.RawMessage(`{}`)}}), want: journal.SkipUnreported},
		"handed over":                                        {issue: issue("needs-human"), want: journal.SkipHuman},
		"handed over and named":                              {issue: issue("needs-human"), named: true},
		"waits for an answer":                                {issue: issue("needs-info"), want: journal.SkipAnswer},
		"waits for an answer, and is edited":                 {issue: issue("needs-info"), state: worked(journal.Tally{Hash: "old", Outcome: journal.NeedsInfo}), want: ""},
		"edited, but the label is a person's":                {issue: issue("needs-info"), state: worked(journal.Tally{Hash: "old", Outcome: journal.Failed}), want: journal.SkipAnswer},
		"its labels could not be changed":                    {issue: issue(), state: unlabelled, want: journal.SkipLabels},
		"waits for its next attempt":                         {issue: issue(), state: worked(journal.Tally{Hash: hash, RetryAt: now.Add(time.Hour)}), want: journal.SkipRetry},
		"has waited for its next attempt":                    {issue: issue(), state: worked(journal.Tally{Hash: hash, RetryAt: now.Add(-time.Hour)})},
		"waits, and is edited":                               {issue: issue(), state: worked(journal.Tally{Hash: "old", RetryAt: now.Add(time.Hour)})},
		"waits, and is named":                                {issue: issue(), state: worked(journal.Tally{Hash: hash, RetryAt: now.Add(time.Hour)}), named: true},
		"another host has finished it":                       {issue: issue(), state: finished(hash, false), want: journal.SkipDone},
		"another host has finished another text":             {issue: issue(), state: finished("old", false)},
		"this host has finished it, and a person wants more": {issue: issue(), state: finished(hash, true)},
		"stopped elsewhere":                                  {issue: shows(""), state: worked(stopped(hash)), want: journal.SkipHalted},
		"stopped elsewhere, and named":                       {issue: shows(""), state: worked(stopped(hash)), named: true},
		"stopped elsewhere, and edited":                      {issue: shows(""), state: worked(stopped("old"))},
		"stopped, which this copy shows":                     {issue: shows("r2"), state: worked(stopped(hash))},
		"stopped, on a forge":                                {issue: issue(), state: worked(stopped(hash))},
		"stopped here":                                       {issue: shows(""), state: func(v *view) { worked(stopped(hash))(v); v.last[key] = journal.Record{Run: journal.Run{ID: "r2"}} }},
		"stopped elsewhere, and nobody can write that":       {issue: issue(), state: worked(stopped(hash)), readOnly: true, want: journal.SkipHalted},
		"the same, and changed since":                        {issue: changed, state: worked(stopped(hash)), readOnly: true},
		"the same, and edited":                               {issue: issue(), state: worked(stopped("old")), readOnly: true},
		"stopped here, and nobody can write that":            {issue: issue(), state: func(v *view) { worked(stopped(hash))(v); v.last[key] = journal.Record{Run: journal.Run{ID: "r2"}} }, readOnly: true},
		"unlabelled elsewhere, and has the label again":      {issue: issue(), state: worked(journal.Tally{Run: "r2", Hash: hash, Outcome: journal.Superseded, Stopped: true}), readOnly: true},
		"a cap is reached":                                   {issue: issue(), state: func(v *view) { v.capped = &journal.Skip{Code: journal.SkipCap} }, want: journal.SkipCap},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &Planner{
				Run:     config.Config{Labels: tracker.StateLabels{NeedsHuman: "needs-human", NeedsInfo: "needs-info", InReview: "in-review"}},
				Require: []string{"auto"}, Exclude: []string{"wip"},
			}
			if test.readOnly {
				p.Run.Tracker = unwritable{}
			}
			var keys []string
			if test.named {
				keys = []string{key}
			}
			v := p.newView(keys)
			if test.state != nil {
				test.state(&v)
			}
			var got journal.SkipCode
			if skip := v.whyNot(test.issue); skip != nil {
				got = skip.Code
			}
			if got != test.want {
				t.Errorf("the reason is %q, not %q", got, test.want)
			}
		})
	}
}

// unwritable is a tracker of which only the type matters.
type unwritable struct {
	tracker.Tracker
	tracker.ReadOnly
}

func (unwritable) Change(context.Context, string, tracker.Change) error { return nil }

func (unwritable) Report(context.Context, string, tracker.Report) error { return nil }

// An issue whose request is followed up has only this task, before the others.
func TestTasks(t *testing.T) {
	t.Parallel()
	plan := Plan{
		Work:     []tracker.Issue{{Key: "b"}, {Key: "a"}, {Key: "d"}},
		FollowUp: []FollowUp{{FollowUp: tracker.FollowUp{Key: "c"}, Issue: tracker.Issue{Key: "c"}}, {FollowUp: tracker.FollowUp{Key: "a"}, Issue: tracker.Issue{Key: "a"}}},
	}
	var got []string
	for _, task := range plan.Tasks() {
		got = append(got, fmt.Sprint(task.Issue.Key, task.Follow != nil))
	}
	if text := strings.Join(got, " "); text != "atrue ctrue bfalse dfalse" {
		t.Errorf("tasks %s", text)
	}
}

func TestWhatWaits(t *testing.T) {
	t.Parallel()
	now := time.Now()
	skipped := func(code journal.SkipCode, in time.Duration, detail string) Skipped {
		return Skipped{Skip: journal.Skip{Code: code, Until: now.Add(in), Detail: detail}}
	}
	p := Plan{Skipped: []Skipped{
		skipped(journal.SkipRetry, time.Hour, "x"), skipped(journal.SkipRetry, time.Minute, ""), skipped(journal.SkipRetry, -time.Minute, ""), skipped(journal.SkipHuman, time.Second, ""),
	}}
	if at, err := p.RetryAt(now), p.Spent(); !at.Equal(now.Add(time.Minute)) || err != nil {
		t.Errorf("due %s, %v", at, err)
	}
	p.Skipped = append(p.Skipped, skipped(journal.SkipCap, time.Second, "all is spent"))
	if at, err := p.RetryAt(now), p.Spent(); !at.Equal(now.Add(time.Second)) || err == nil || err.Error() != "all is spent" {
		t.Errorf("due %s, %v", at, err)
	}
}

// TestFinishedReadOnce checks that a finished issue needs no question of its own to the journal if its latest run finished it.
func TestFinishedReadOnce(t *testing.T) {
	t.Parallel()
	store := &asked{}
	p := &Planner{Run: config.Config{Pool: "pool", Store: store}}
	for _, tt := range []struct {
		last journal.Record
		run  string
		here bool
		asks int
	}{
		{journal.Record{Run: journal.Run{ID: "1"}}, "1", true, 0},
		{journal.Record{Run: journal.Run{ID: "1"}, State: journal.State{Elsewhere: true}}, "1", false, 0},
		{journal.Record{Run: journal.Run{ID: "1"}}, "2", false, 1},
		{journal.Record{}, "", false, 1},
	} {
		v := p.newView(nil)
		v.last["key"], store.asks = tt.last, 0
		if err := v.addFinished(t.Context(), "key", worktree.ClaimRecord{Run: tt.run}); err != nil || v.reportedHere["key"] != tt.here || store.asks != tt.asks {
			t.Errorf("latest run %q, finished by %q: %v, reported here: %v, %d questions", tt.last.ID, tt.run, err, v.reportedHere["key"], store.asks)
		}
	}
}

// asked is a store without records that counts questions.
type asked struct {
	journal.Store
	asks int
}

func (a *asked) Find(context.Context, journal.Query) ([]journal.Record, error) {
	a.asks++
	return nil, nil
}
