package journaltest

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
)

// Run runs the suite. open makes an empty store and registers its cleanup with t; it is called from parallel tests.
func Run(t *testing.T, open func(t *testing.T) journal.Store) {
	for name, test := range map[string]func(*testing.T, journal.Store){
		"RoundTrip":  roundTrip,
		"Replace":    replace,
		"Find":       find,
		"Order":      order,
		"Forget":     forget,
		"Isolated":   isolated,
		"Concurrent": concurrent,
		"Cancelled":  cancelled,
		"Spend":      spend,
		"Totals":     totals,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// start is the time at which the first record began.
func start() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 890, time.UTC) }

// Full returns a record with a value in every field that a run sets.
func Full() journal.Record {
	return journal.Record{Run: fullRun(), State: fullState()}
}

func fullRun() journal.Run {
	return journal.Run{
		ID: "20260304-050607-abc", Kind: journal.KindIssue, Pool: "p", Key: "fix-login", Title: "Fix 'login'; DROP TABLE runs",
		URL: "https://x.example/1", Hash: "00ff", Attempt: 2, Host: "h", Branch: "ralph/fix-login", Base: "main", Agent: "a",
		Model: "m", Sandbox: "none", Dir: "/state/runs/1", Started: start(),
		Settings: journal.Settings{
			Publish: journal.PublishMerge, Require: []string{"no-human", "x"}, Weaker: "w",
			Limits: journal.Limits{MaxAttempts: 3, Backoff: time.Minute, BackoffMax: time.Hour},
			Checks: journal.Checks{
				Gate: []loop.Command{{Line: "g", Timeout: time.Minute}}, Clean: true, Setup: []loop.Command{{Line: "s"}}, Copy: []string{"c"},
				Files: journal.GateFilesRequire, Plant: true,
			},
			Review: journal.Reviewing{Agent: "a:m", Rounds: 2},
		},
		FollowUp: "checks", After: "before", AfterOutcome: journal.Failed, Keep: true, Scratch: true, HandedOver: true,
		Earlier: journal.Tally{
			Run: "20260303-040506-xyz", Host: "g", Outcome: journal.Failed, Hash: "00fe", Tip: "9999", At: start(), RetryAt: start(),
			Final: true, Attempts: 1, Failures: 2, Rounds: 1, Spent: agents.Usage{Input: 3, CostUSD: 0.25},
			Parked: []journal.Parked{{Agent: "b", Model: "n", Class: agents.Overload, Host: "g", At: start(), Until: start(), Key: "k"}},
		},
	}
}

func fullState() journal.State {
	return journal.State{
		Stage: journal.StagePublish, PID: 7, Process: "123", Tip: "aaaa", Commits: 2, WIP: "bbbb", Tree: "/t",
		Verified:  journal.Verified{Tip: "aaaa", Base: "cccc", Conditions: "dddd", At: start()},
		Published: "pushed",
		Request:   journal.Request{Number: 4, URL: "u", Draft: true},
		Facts:     fullFacts(),
		Verdict: journal.Verdict{
			Outcome: journal.GateFailed, Final: true, Counted: true, RetryAt: start(),
			Reason: journal.Reason{Code: journal.ReasonVerify, Detail: "d", Unfit: tracker.Unfit{Code: tracker.UnfitBlocked, Detail: "b"}},
		},
		Warnings: []sandboxes.Notice{{Text: "w", Subject: sandboxes.Subject{Cause: sandboxes.NotAllowed, Host: "h", Port: 1}}},
		Tries:    2, Unreported: "u", Unlabelled: "l", Elsewhere: true,
	}
}

func fullFacts() journal.Facts {
	exit := 3
	check := loop.Check{Command: "make test", ExitCode: 2, Duration: time.Second, Tail: "it's \"broken\"\x00\n☃"}
	verified := &journal.Verification{Tip: "aaaa", Base: "main", Checks: []loop.Check{check}, Rebase: true}
	return journal.Facts{
		Kind: journal.KindIssue, Limits: journal.Limits{MaxAttempts: 3}, Attempt: 2, Files: journal.GateFilesBlock, Failures: 1,
		Stop: journal.StopDisk, StopBy: "1 GB", Unfit: tracker.Unfit{Code: tracker.UnfitLacks, Detail: "l"}, StoppedStage: journal.StageWork,
		Open: &journal.Fault{Kind: journal.FaultAgent, Text: "x"}, End: loop.EndMaxIterations, EndDetail: "d", Starved: true, Optional: true,
		Iterations: []loop.Iteration{{
			Number: 1, Agent: "a", Model: "m", Ended: start(), Ending: loop.EndingExit, Failure: &agents.Failure{Class: agents.RateLimit},
		}},
		Failure: &agents.Failure{Class: agents.RateLimit}, AvailableAt: start(), Tip: "aaaa", Edited: true, Commits: 2,
		Gate: []loop.Check{check}, GateRan: true, Message: "m", Question: "q", NoChange: "n", Exit: &exit,
		Usage:    agents.Usage{Input: 1, Output: 2, CostUSD: 0.5},
		Baseline: &journal.Verification{Tip: "cccc", Base: "main", Checks: []loop.Check{check}, Setup: true},
		Verify:   verified,
		Watch: &journal.Watch{
			Files: []journal.Watched{{
				Path: "b_test.go", OldPath: "a_test.go", Role: "test", Why: "y", Test: true, Added: true, Removed: true, Helper: true,
			}},
			UnlistedFiles: 1, Findings: []string{"f"}, Added: 1, Removed: 2, Skipped: 3, Focused: 4, Assertions: 5, Base: verified,
			Canaries: []journal.Canary{{Path: "c_test.go", Noticed: true}},
		},
		Review: &journal.Review{
			Tip: "aaaa", Change: "eeee", Agent: "a:m", Round: 2, Accepted: true, Solved: true, Tested: true, Failed: "x",
			Findings: []journal.Finding{{File: "a", Line: 3, Severity: journal.SeverityMajor, Text: "t"}},
		},
		ReviewSpend: journal.ReviewSpend{Usage: agents.Usage{Output: 1}}, Policy: []string{"p"}, Conflict: "c", Solve: []string{"s"}, Hopeless: true,
		Publish: &journal.Fault{Kind: journal.FaultLost}, Tries: 1, Done: true, Gone: true, CompletedAt: start(),
	}
}

func record(id, pool, key string, kind journal.Kind, minute int, ended bool) journal.Record {
	r := journal.Record{Run: journal.Run{ID: id, Pool: pool, Key: key, Kind: kind, Started: start().Add(time.Duration(minute) * time.Minute)}}
	if ended {
		r.Ended = r.Started.Add(time.Second)
	}
	return r
}

func save(t *testing.T, s journal.Store, records ...journal.Record) {
	t.Helper()
	for _, r := range records {
		if err := s.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

func ids(t *testing.T, s journal.Store, q journal.Query) string {
	t.Helper()
	list, err := s.Find(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range list {
		out = append(out, r.ID)
	}
	return strings.Join(out, " ")
}

func roundTrip(t *testing.T, s journal.Store) {
	want := Full()
	save(t, s, want, record("another", "p", "k", journal.KindIssue, 1, true))
	got, err := s.Find(t.Context(), journal.Query{Pool: "p", Run: want.ID})
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func replace(t *testing.T, s journal.Store) {
	r := record("r", "", "k", journal.KindIssue, 0, false)
	save(t, s, r)
	r.Stage, r.Ended, r.Title = journal.StageEnd, start(), "learned later"
	save(t, s, r, r)
	got, err := s.Find(t.Context(), journal.Query{})
	if err != nil || len(got) != 1 || got[0].Title != r.Title || got[0].Stage != journal.StageEnd {
		t.Errorf("%+v, %v", got, err)
	}
	if open := ids(t, s, journal.Query{Open: true}); open != "" {
		t.Errorf("open: %s", open)
	}
}

func find(t *testing.T, s journal.Store) {
	save(t, s,
		record("a1", "", "a", journal.KindIssue, 1, true), record("a2", "", "a", journal.KindIssue, 2, true),
		record("a3", "", "a", journal.KindIssue, 3, false), record("b1", "", "b", journal.KindIssue, 4, false),
		record("p1", "", "a", journal.KindPrompt, 5, true), record("c1", "", "c", journal.KindCommand, 6, false),
		record("x1", "other", "a", journal.KindIssue, 7, true), record("x2", "other", "a", journal.KindIssue, 8, false),
	)
	for _, c := range []struct {
		q    journal.Query
		want string
	}{
		{journal.Query{}, "a1 a2 a3 b1 p1 c1"},
		{journal.Query{Pool: "other"}, "x1 x2"},
		{journal.Query{Pool: "none"}, ""},
		{journal.Query{Run: "a2"}, "a2"},
		{journal.Query{Run: "x1"}, ""},
		{journal.Query{Pool: "other", Run: "x1"}, "x1"},
		{journal.Query{Key: "a"}, "a1 a2 a3 p1"},
		{journal.Query{Key: "A"}, ""},
		{journal.Query{Key: "a", Kind: journal.KindIssue}, "a1 a2 a3"},
		{journal.Query{Kind: journal.KindCommand}, "c1"},
		{journal.Query{Open: true}, "a3 b1 c1"},
		{journal.Query{Open: true, Kind: journal.KindIssue}, "a3 b1"},
		{journal.Query{Since: start().Add(4 * time.Minute)}, "b1 p1 c1"},
		{journal.Query{Since: start().Add(4*time.Minute + 1), Open: true}, "c1"},
		{journal.Query{Since: start().Add(3 * time.Minute), Latest: true}, "p1"},
		{journal.Query{Keys: []string{"c", "b", "none"}}, "b1 c1"},
		{journal.Query{Keys: []string{"a"}, Kind: journal.KindIssue, Latest: true}, "a2"},
		{journal.Query{Keys: []string{"a", "b"}, Limit: 2}, "b1 p1"},
		{journal.Query{Keys: []string{`it's "none"`}}, ""},
		{journal.Query{Keys: []string{}}, "a1 a2 a3 b1 p1 c1"},
		{journal.Query{Latest: true}, "a2 p1"},
		{journal.Query{Latest: true, Kind: journal.KindIssue}, "a2"},
		{journal.Query{Latest: true, Key: "b"}, ""},
		{journal.Query{Pool: "other", Latest: true}, "x1"},
		{journal.Query{Limit: 2}, "p1 c1"},
		{journal.Query{Limit: 2, Skip: 1}, "b1 p1"},
		{journal.Query{Limit: 3, Skip: 5}, "a1"},
		{journal.Query{Limit: 3, Skip: 6}, ""},
		{journal.Query{Limit: 9}, "a1 a2 a3 b1 p1 c1"},
		{journal.Query{Key: "a", Kind: journal.KindIssue, Limit: 1}, "a3"},
		{journal.Query{Latest: true, Limit: 1}, "p1"},
		{journal.Query{Since: start().Add(4 * time.Minute), Limit: 1, Skip: 2}, "b1"},
	} {
		if got := ids(t, s, c.q); got != c.want {
			t.Errorf("%+v: %q, want %q", c.q, got, c.want)
		}
	}
}

// order tests records that began at the same instant, and IDs that do not sort by time.
func order(t *testing.T, s journal.Store) {
	save(t, s, record("z", "", "k", journal.KindIssue, 0, true), record("b", "", "k", journal.KindIssue, 1, true),
		record("a", "", "k", journal.KindIssue, 1, true))
	if got := ids(t, s, journal.Query{}); got != "z a b" {
		t.Errorf("order %q", got)
	}
	if got := ids(t, s, journal.Query{Latest: true}); got != "b" {
		t.Errorf("latest %q", got)
	}
}

func forget(t *testing.T, s journal.Store) {
	save(t, s, record("a", "", "k", journal.KindIssue, 0, false), record("b", "", "k", journal.KindIssue, 1, false))
	for range 2 { // the second time there is no record
		if err := s.Forget(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	if got := ids(t, s, journal.Query{}); got != "b" {
		t.Errorf("left: %q", got)
	}
}

// isolated changes a saved and a found record afterwards: the store must not change.
func isolated(t *testing.T, s journal.Store) {
	r := Full()
	save(t, s, r)
	r.Warnings[0].Text, r.Facts.Gate[0].Tail = "changed", "changed"
	for range 2 {
		got, err := s.Find(t.Context(), journal.Query{Pool: "p"})
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		if diff := cmp.Diff(Full(), got[0]); diff != "" {
			t.Fatalf("record (-want +got):\n%s", diff)
		}
		got[0].Warnings[0].Text = "changed"
	}
}

func concurrent(t *testing.T, s journal.Store) {
	const writers, runs = 4, 8
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range runs {
				r := record(fmt.Sprintf("r-%d-%d", w, n), "", fmt.Sprint(w), journal.KindIssue, n, false)
				r.Commits = n
				err := s.Save(t.Context(), r)
				r.Ended = start()
				err = errors.Join(err, s.Save(t.Context(), r))
				mine, findErr := s.Find(t.Context(), journal.Query{Key: r.Key})
				if err = errors.Join(err, findErr); err != nil || len(mine) != n+1 || mine[n].Commits != n {
					t.Errorf("%d records, %v", len(mine), err)
				}
			}
		})
	}
	all.Wait()
	list, err := s.Find(t.Context(), journal.Query{})
	if err != nil || len(list) != writers*runs || slices.ContainsFunc(list, func(r journal.Record) bool { return r.Ended.IsZero() }) {
		t.Errorf("%d records, %v", len(list), err)
	}
}

// spend tests that usage counts once, on the day on which it became known.
func spend(t *testing.T, s journal.Store) {
	day := time.Date(2026, 3, 4, 23, 59, 59, 0, time.UTC)
	next := day.Add(time.Second)
	for _, step := range []struct {
		pool, run string
		used      agents.Usage
		at        time.Time
	}{
		{"", "a", agents.Usage{Input: 10, Output: 1, CacheRead: 5, CacheWrite: 2, CostUSD: 0.5}, day},
		{"", "b", agents.Usage{Input: 100}, day},
		{"", "a", agents.Usage{Input: 10, Output: 1, CacheRead: 5, CacheWrite: 2, CostUSD: 0.5}, day},  // already known
		{"", "a", agents.Usage{Input: 8, Output: 4, CacheRead: 5, CacheWrite: 2, CostUSD: 0.75}, next}, // a smaller value is no refund
		{"other", "c", agents.Usage{Input: 1000}, next},
	} {
		if err := s.Spend(t.Context(), step.pool, step.run, step.used, step.at); err != nil {
			t.Fatal(err)
		}
	}
	check := func(pool string, since time.Time, want agents.Usage) {
		t.Helper()
		if got, _, err := s.Spent(t.Context(), pool, since, time.Now()); err != nil || got != want {
			t.Errorf("pool %q since %s: %+v, %v; want %+v", pool, since, got, err, want)
		}
		if _, got, err := s.Spent(t.Context(), pool, since.AddDate(-1, 0, 0), since); err != nil || got != want {
			t.Errorf("pool %q, lately since %s: %+v, %v; want %+v", pool, since, got, err, want)
		}
	}
	all := agents.Usage{Input: 110, Output: 4, CacheRead: 5, CacheWrite: 2, CostUSD: 0.75}
	check("", day.AddDate(0, 0, -30), all)
	check("", day.Add(-time.Hour), all)
	check("", next, agents.Usage{Output: 3, CostUSD: 0.25})
	check("", next.AddDate(0, 0, 1), agents.Usage{})
	check("other", day, agents.Usage{Input: 1000})
	check("none", day, agents.Usage{})

	for _, run := range []string{"x", "y"} { // the sum of both would overflow; and nothing is refunded
		huge := agents.Usage{Input: math.MaxInt64, Output: math.MinInt64, CacheRead: math.MaxInt64, CostUSD: math.MaxFloat64}
		if err := s.Spend(t.Context(), "absurd", run, huge, day); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Spend(t.Context(), "absurd", "z", agents.Usage{CostUSD: math.NaN()}, day); err != nil {
		t.Fatal(err)
	}
	check("absurd", day, agents.Usage{Input: 2 * journal.MaxTokens, CacheRead: 2 * journal.MaxTokens, CostUSD: 2 * journal.MaxCostUSD})

	r := record("a", "", "k", journal.KindIssue, 0, false) // a record counts from the time of saving
	r.Facts.Usage = agents.Usage{Input: 30}
	save(t, s, r, r)
	check("", next.AddDate(0, 0, 1), agents.Usage{Input: 20})
	if err := s.Spend(t.Context(), "", "a", agents.Usage{Input: 31}, time.Now()); err != nil {
		t.Fatal(err)
	}
	check("", next.AddDate(0, 0, 1), agents.Usage{Input: 21})

	r.Facts.Usage.Input = 1031 // 1000 of them are only reported by agents
	r.Facts.Iterations = []loop.Iteration{{Unmetered: agents.Usage{Input: 400}}}
	r.Facts.ReviewSpend.Unseen = agents.Usage{Input: 600}
	save(t, s, r)
	check("", next.AddDate(0, 0, 1), agents.Usage{Input: 21})
}

func cancelled(t *testing.T, s journal.Store) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	if _, err := s.Find(ctx, journal.Query{}); !errors.Is(err, context.Canceled) {
		t.Errorf("find: %v", err)
	}
	if err := s.Save(ctx, Full()); !errors.Is(err, context.Canceled) {
		t.Errorf("save: %v", err)
	}
}

// totals tests a store that sums up runs itself.
func totals(t *testing.T, s journal.Store) {
	adds, ok := s.(journal.Totals)
	if !ok {
		t.Skip("it adds up nothing")
	}
	var all []journal.Record
	for i := range 90 {
		r := record(fmt.Sprint("r", i), "p", "k", journal.KindIssue, i*120, i%5 > 0)
		r.Facts.Gate = []loop.Check{{Command: "g", Tail: "a\x00\x00b\\\x00 \\u0000 \\\\u0000\x00\\"}}
		r.Agent, r.Model = []string{"claude", "codex"}[i%2], []string{"", "m", "n\"'"}[i%3]
		if r.Facts.Usage = (agents.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, CostUSD: 0.25, Estimated: 1}); i%4 == 0 {
			r.Facts.Usage = agents.Usage{}
		}
		if r.Facts.Usage.Unpriced = int64(i % 7 / 5); i%3 == 0 {
			r.Facts.Iterations, r.Facts.UsedNothing = []loop.Iteration{{Number: 1}}, i%24 == 12
		}
		switch i / 4 % 5 {
		case 1, 2:
			r.Facts.StoppedStage = []journal.Stage{journal.StagePrepare, journal.StageWork}[i/4%5-1]
		case 3:
			r.Facts.Open = &journal.Fault{}
		case 4:
			r.Facts.End = loop.EndDone
		}
		if i%11 == 7 {
			r.Kind, r.Agent, r.Model = journal.KindCommand, "", ""
		}
		r.Settings.Attended = i%8 == 4 || i%10 == 9 // some have used nothing, others something
		// A run that has not ended may still get another outcome.
		r.Verdict.Outcome = []journal.Outcome{journal.Succeeded, journal.Failed}[i%7%2]
		all = append(all, r)
	}
	save(t, s, all...)
	save(t, s, record("x", "other", "k", journal.KindIssue, 900, true))
	byKind := func(a, b journal.Total) int {
		return stdcmp.Or(stdcmp.Compare(a.Day, b.Day), strings.Compare(a.Agent, b.Agent), strings.Compare(a.Model, b.Model),
			strings.Compare(string(a.Outcome), string(b.Outcome)))
	}
	for _, from := range []int{0, 15, 99} {
		want := journal.Sum(all[min(from, len(all)):])
		got, err := adds.Totals(t.Context(), "p", start().Add(time.Duration(from)*120*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(want, byKind)
		slices.SortFunc(got, byKind)
		if len(want) != len(got) || len(want) > 0 && !slices.Equal(want, got) {
			t.Errorf("from record %d:\n%+v\nwant:\n%+v", from, got, want)
		}
	}
}
