package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/sqlite"
)

// What each agent of a run has used is its own, and what no iteration used the last one's.
func TestCostOfAChain(t *testing.T) {
	t.Parallel()
	usage := func(usd float64) agents.Usage { return agents.Usage{Input: int64(usd * 100), CostUSD: usd} }
	limit := &agents.Failure{Class: agents.RateLimit}
	r := journal.Record{Run: journal.Run{Kind: journal.KindIssue, Agent: "a", Model: "big"}, State: journal.State{Facts: journal.Facts{
		Usage: usage(8), Iterations: []loop.Iteration{
			{Agent: "a", Model: "big", Usage: usage(1)}, {Agent: "a", Model: "big", Usage: usage(2), Failure: limit},
			{Agent: "c", Failure: limit}, {Agent: "a", Model: "small", Usage: usage(1)}, {Agent: "b", Usage: usage(3)},
		},
	}}}
	one := journal.Record{Run: journal.Run{Kind: journal.KindIssue, Agent: "b"}, State: journal.State{Facts: journal.Facts{Usage: usage(2)}}}
	for by, want := range map[string]string{
		"agent": "b 2 runs $6.00, a 1 runs $4.00; 2 runs $10.00", "model": "agent's own 2 runs $6.00, big 1 runs $3.00, small 1 runs $1.00; 2 runs $10.00",
	} {
		sums := addUp([]journal.Record{r, one}, by)
		var list []string
		for _, g := range sums.Groups {
			list = append(list, fmt.Sprintf("%s %d runs %s", g.Group, g.Runs, cost(g.Usage)))
		}
		got := fmt.Sprintf("%s; %d runs %s", strings.Join(list, ", "), sums.Total.Runs, cost(sums.Total.Usage))
		if got != want || sums.Total.Unknown > 0 {
			t.Errorf("by %s: %s", by, got)
		}
	}
}

// What only an agent reports is told of the agent, and in the total.
func TestCostUnseen(t *testing.T) {
	t.Parallel()
	lie, review := agents.Usage{Input: 90, CostUSD: 9}, agents.Usage{Output: 1}
	r := journal.Record{Run: journal.Run{Kind: journal.KindIssue, Agent: "a"}, State: journal.State{Facts: journal.Facts{
		Usage:      agents.Usage{Input: 110, Output: 1, CostUSD: 11},
		Iterations: []loop.Iteration{{Agent: "a", Usage: agents.Usage{Input: 100, CostUSD: 10}, Unseen: lie}, {Agent: "b", Usage: agents.Usage{Input: 10, CostUSD: 1}}},
		Review:     &journal.Review{Unseen: review},
	}}}
	sums := addUp([]journal.Record{r}, "agent")
	if g := sums.Groups; len(g) != 2 || g[0].Unseen != lie || g[1].Unseen != review || sums.Total.Unseen != lie.Add(review) {
		t.Errorf("%+v", sums)
	}
	var out strings.Builder
	costTable(screen.New(&out, io.Discard, nil), sums)
	if !strings.Contains(out.String(), "only the agents report $9.00; 90 tokens in, 0 from cache, 1 out") {
		t.Errorf("it says:\n%s", out.String())
	}
}

func TestSince(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 1, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"": {}, "36h": now.Add(-36 * time.Hour), "7d": time.Date(2026, 11, 16, 1, 0, 0, 0, time.Local),
		"2026-11-01": time.Date(2026, 11, 1, 0, 0, 0, 0, time.Local),
	} {
		if got, err := parseSince(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"7", "d", "-1d", "1.5d", "99999d", "-1h", "2026-13-01", "0001-01-01", "900000h", "1 week"} {
		if got, err := parseSince(text, now); err == nil {
			t.Errorf("%q is taken as %s", text, got)
		}
	}
}

// costRun is a run of the agent a that began at noon of a day in March 2026.
func costRun(key string, day int, used agents.Usage) journal.Record {
	r := journal.Record{Run: journal.Run{
		ID: fmt.Sprint(key, day), Kind: journal.KindIssue, Key: key, Agent: "a", Started: time.Date(2026, 3, day, 12, 0, 0, 0, time.Local),
	}}
	r.Ended, r.Verdict.Outcome = r.Started.Add(time.Minute), journal.Succeeded
	r.Facts.Usage, r.Facts.End, r.Facts.Iterations = used, loop.EndMaxed, []loop.Iteration{{Number: 1}}
	return r
}

// Only runs in which an agent may have worked can lack a cost.
func TestRunsWithoutCost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*journal.Record)
		want   int
	}{
		"reported nothing": {func(*journal.Record) {}, 1},
		"reported tokens":  {func(r *journal.Record) { r.Facts.Usage = agents.Usage{Input: 1, Unpriced: 1} }, 1},
		"costs nothing":    {func(r *journal.Record) { r.Facts.Usage.Input = 1 }, 0}, // its price is 0
		"reported a cost":  {func(r *journal.Record) { r.Facts.Usage.CostUSD = 1 }, 0},
		"cost of a part":   {func(r *journal.Record) { r.Facts.Usage = agents.Usage{CostUSD: 1, Input: 2, Unpriced: 1} }, 1},
		"ralph died":       {func(r *journal.Record) { r.Facts = journal.Facts{Stop: journal.StopCrash, Cut: journal.StageWork} }, 1},
		"cut before":       {func(r *journal.Record) { r.Facts = journal.Facts{Stop: journal.StopAsked, Cut: journal.StagePrepare} }, 0},
		"setup failed":     {func(r *journal.Record) { r.Facts = journal.Facts{End: loop.EndSetup} }, 0},
		"merged by hand":   {func(r *journal.Record) { r.Settings.Attended, r.Facts = true, journal.Facts{} }, 0},
		"command":          {func(r *journal.Record) { r.Kind, r.Facts = journal.KindCommand, journal.Facts{} }, 0},
		"no agent":         {func(r *journal.Record) { r.Agent, r.Facts = "", journal.Facts{} }, 0},
	} {
		r := costRun("k", 1, agents.Usage{})
		c.change(&r)
		if got := addUp([]journal.Record{r}, "day").Total.Unknown; got != c.want {
			t.Errorf("%s: %d runs without cost, want %d", name, got, c.want)
		}
	}
}

// Tokens and costs have their own medians; what is not known counts for nothing, and not as 0.
func TestForecast(t *testing.T) {
	t.Parallel()
	supposed := loop.Budget{Tokens: 200000, CostUSD: 2}.Usage()
	for name, c := range map[string]struct {
		used   []agents.Usage
		issues int
		want   string
		tokens int64 // of each
	}{
		"all known": {[]agents.Usage{{Input: 10, CostUSD: 9}, {Input: 30, CostUSD: 0.5}, {Input: 20, CostUSD: 1}}, 4,
			"Expected cost: $4.00 for 4 issues, at $1.00 each, the median of 3 runs with a.", 20},
		"some unknown": {[]agents.Usage{{Input: 10, Unpriced: 10}, {Input: 20, Unpriced: 20}, {Input: 30, CostUSD: 3}}, 1,
			"Expected cost: $3.00 for 1 issue, at $3.00 each, the median of 3 runs with a; 2 have no known cost.", 20},
		"a part unknown": {[]agents.Usage{{Input: 10, CostUSD: 1, Unpriced: 5}, {Input: 30, CostUSD: 3}}, 1,
			"Expected cost: $3.00 for 1 issue, at $3.00 each, the median of 2 runs with a; 1 has no known cost.", 30},
		"a cost by estimate": {[]agents.Usage{{Input: 10, Output: 5, CostUSD: 2, Estimated: 15}, {Input: 5, Output: 1, CostUSD: 3, Estimated: 2}}, 1,
			"Expected cost: $3.00 for 1 issue, at $3.00 each, the median of 2 runs with a; 1 has no known cost.", 15},
		"none known": {[]agents.Usage{{Input: 1000, Unpriced: 1000}, {Output: 3000, Unpriced: 3000}}, 2,
			"Expected cost: 6.0k tok for 2 issues, at 3.0k tok each, the median of 2 runs with a; 2 have no known cost.", 3000},
		"costs nothing":      {[]agents.Usage{{Input: 3000}}, 1, "Expected cost: 3.0k tok for 1 issue, at 3.0k tok each, the median of 1 run with a.", 3000},
		"nobody counts":      {[]agents.Usage{supposed, supposed.Add(supposed), loop.Budget{Tokens: 5}.Usage()}, 1, "", 0},
		"nobody counts some": {[]agents.Usage{supposed, {Input: 10, CostUSD: 1}}, 1, "Expected cost: $1.00 for 1 issue, at $1.00 each, the median of 1 run with a.", 10},
		"nothing used":       {[]agents.Usage{{}}, 1, "", 0},
		"no run":             {nil, 1, "", 0},
		"no issue":           {[]agents.Usage{{Input: 10, CostUSD: 1}}, 0, "", 0},
	} {
		other := costRun("k", 1, agents.Usage{Input: 7, CostUSD: 70})
		other.Model = "m"
		part := costRun("k", 1, agents.Usage{Output: 1, CostUSD: 70}.Add(supposed))
		part.Facts.Iterations = []loop.Iteration{{Usage: supposed}, {Usage: agents.Usage{Output: 1, CostUSD: 70}}}
		runs := []journal.Record{other, part}
		for _, u := range c.used {
			runs = append(runs, costRun("k", 1, u))
		}
		got, tokens := "", int64(0)
		if f := forecast(runs, agents.Choice{Agent: "a"}, c.issues); f != nil {
			got, tokens = f.String(), f.Each.Tokens()
			if f.Each.Unpriced > 0 && f.Unknown < f.Runs {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if got != c.want || tokens != c.tokens {
			t.Errorf("%s: %q, %d tokens", name, got, tokens)
		}
	}
	m := costRun("k", 1, agents.Usage{Input: 7, CostUSD: 70})
	m.Model = "m"
	if got, want := forecast([]journal.Record{m}, agents.Choice{Agent: "a", Model: "m"}, 1).String(), "1 run with a, m."; !strings.HasSuffix(got, want) {
		t.Errorf("%q", got)
	}
}

// A merge by a person is no run of an agent; what its review has used counts.
func TestCostOfMergesByAPerson(t *testing.T) {
	t.Parallel()
	run := costRun("one", 1, agents.Usage{Input: 3, CostUSD: 1})
	merge, reviewed := costRun("one", 1, agents.Usage{}), costRun("two", 1, agents.Usage{Input: 2, CostUSD: 2})
	merge.Settings.Attended, reviewed.Settings.Attended = true, true
	for by, want := range map[string]string{"issue": "two 0 one 1 total 1 $3.00", "day": "2026-03-01 1 total 1 $3.00"} {
		sums := addUp([]journal.Record{run, merge, reviewed}, by)
		got := ""
		for _, g := range append(sums.Groups, sums.Total) {
			got += fmt.Sprintf("%s %d ", g.Group, g.Runs)
		}
		if got += sums.Total.spend().String(); got != want {
			t.Errorf("by %s: %s, want %s", by, got, want)
		}
	}
	if sums := addUp([]journal.Record{merge}, "outcome"); len(sums.Groups) != 0 || sums.Total.Runs != 0 {
		t.Errorf("only a merge: %+v", sums)
	}
}

func TestCostCommand(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\n---\n")
	m.commit(t)
	state := filepath.Join(m.root, "state")
	run := func(args ...string) string {
		t.Helper()
		got := m.run(t, nil, append(args, "--state-dir="+state)...)
		if got.status != exit.OK || got.stderr != "" {
			t.Errorf("%v: %+v", args, got)
		}
		return got.stdout
	}
	if got, want := m.run(t, nil, "cost", "--json", "--csv"), "--json and --csv exclude each other; choose one"; got.status != exit.Usage || !strings.Contains(got.stderr, want) {
		t.Errorf("two formats: %+v", got)
	}
	if got := run("cost"); got != "No run is on record.\n" {
		t.Errorf("before the first run: %q", got)
	}
	if got := run("cost", "--since=1h"); got != "No run is on record since then.\n" {
		t.Errorf("before the first run: %q", got)
	}
	if got := run("cost", "--csv"); got != "group,runs,runs_without_cost,input,output,cache_read,cache_write,cost_usd,estimated,unpriced\n" {
		t.Errorf("before the first run: %q", got)
	}
	files, err := filepath.Glob(filepath.Join(state, "*", "state.db"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	store, err := sqlite.Open(t.Context(), files[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	save := func(r journal.Record) {
		t.Helper()
		if err := store.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	silent := costRun("one", 1, agents.Usage{})
	save(silent)
	if got, want := run("cost"), "DAY         RUNS  UNKNOWN\n2026-03-01  1     1\ntotal       1     1\n"+
		"The cost of 1 run is unknown, or a part of it: neither the agent nor a price says it.\n"; got != want {
		t.Errorf("nothing known:\n%s\nwant\n%s", got, want)
	}
	if got := run("status"); strings.Contains(got, "COST") || strings.Contains(got, "$") {
		t.Errorf("nothing known:\n%s", got)
	}
	save(costRun("two", 2, agents.Usage{Input: 2000, Output: 500, Unpriced: 2500}))
	priced := costRun("one", 3, agents.Usage{Input: 1000, CacheWrite: 200, CacheRead: 34567, Output: 300, CostUSD: 0.25})
	priced.Model, priced.Verdict.Outcome = "=m\x1b[2J", journal.GateFailed
	save(priced)
	for _, c := range []struct{ args, want string }{
		{"cost", `DAY         RUNS  IN    OUT  CACHE  COST    UNKNOWN
2026-03-01  1     -     -    -      -       1
2026-03-02  1     2.0k  500  -      -       1
2026-03-03  1     1.2k  300  35k    $0.25   -
total       3     3.2k  800  35k    >$0.25  2
The cost of 2 runs is unknown, or a part of it: neither the agent nor a price says it.
`},
		{"cost --by issue --since 2026-03-02", `ISSUE  RUNS  IN    OUT  CACHE  COST    UNKNOWN
one    1     1.2k  300  35k    $0.25   -
two    1     2.0k  500  -      -       1
total  2     3.2k  800  35k    >$0.25  1
The cost of 1 run is unknown, or a part of it: neither the agent nor a price says it.
`},
		{"cost --by outcome --csv", `group,runs,runs_without_cost,input,output,cache_read,cache_write,cost_usd,estimated,unpriced
gate-failed,1,0,1000,300,34567,200,0.250000,0,0
succeeded,2,2,2000,500,0,0,,0,2500
`},
		{"cost --by model --csv --since 2026-03-03", `group,runs,runs_without_cost,input,output,cache_read,cache_write,cost_usd,estimated,unpriced
=m[2J,1,0,1000,300,34567,200,0.250000,0,0
`},
		{"cost --by agent --json --since 2026-03-01", strings.ReplaceAll(`{
  "by": "agent",
  "since": "SINCE",
  "groups": [
    {
      "group": "a",
      "runs": 3,
      "runs_without_cost": 2,
      "input": 3000,
      "output": 800,
      "cache_read": 34567,
      "cache_write": 200,
      "cost_usd": 0.25,
      "unpriced": 2500
    }
  ],
  "total": {
    "group": "total",
    "runs": 3,
    "runs_without_cost": 2,
    "input": 3000,
    "output": 800,
    "cache_read": 34567,
    "cache_write": 200,
    "cost_usd": 0.25,
    "unpriced": 2500
  }
}
`, "SINCE", time.Date(2026, 3, 1, 0, 0, 0, 0, time.Local).Format(time.RFC3339))},
		{"__complete cost --by ", "day\nissue\nagent\nmodel\noutcome\n:4\n"},
	} {
		args := strings.Fields(c.args)
		if args[0] == "__complete" {
			if got := m.run(t, nil, append(args, "")...).stdout; got != c.want {
				t.Errorf("%s: %q", c.args, got)
			}
		} else if diff := cmp.Diff(c.want, run(args...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.args, diff)
		}
	}
	if got := run("cost", "--by=issue", "--json", "--since=2026-03-02"); strings.Count(got, `"cost_usd"`) != 2 {
		t.Errorf("a cost that is not known has a key: %s", got)
	}
	for want, args := range map[string][]string{
		"  COST      TITLE\n": {"status"}, " $0.25\n": {"status"}, "  2.5k tok\n": {"status"},
		"  TOOK  COST\n": {"status", "one"}, "  1m0s  -\n": {"status", "one"}, "  1m0s  $0.25\n": {"status", "one"},
		"  spent     >$0.25; 1200 tokens in, 34567 from cache, 300 out\n":     {"status", "one"},
		"  usage       $0.25; 1200 tokens in, 34567 from cache, 300 out\n":    {"show", "one"},
		"  usage       cost unknown; 2000 tokens in, 0 from cache, 500 out\n": {"show", "two"},
	} {
		if got := run(args...); !strings.Contains(got, want) {
			t.Errorf("%v lacks %q:\n%s", args, want, got)
		}
	}
	// What a merge by a person took and cost is not what the issue did.
	merge := costRun("one", 4, agents.Usage{})
	merge.Settings.Attended, merge.Ended = true, merge.Started.Add(time.Second)
	save(merge)
	if got := run("status"); !strings.Contains(got, "  1m0s  $0.25\n") || strings.Contains(got, "  1s  ") {
		t.Errorf("after a merge:\n%s", got)
	}
}

// The chart has a bar for each group and none for the total, and is left out where it would say nothing.
func TestCostChart(t *testing.T) {
	t.Parallel()
	runs := []journal.Record{
		costRun("one", 1, agents.Usage{Input: 9, CostUSD: 0.01}), costRun("two", 2, agents.Usage{CostUSD: 4}), costRun("three", 3, agents.Usage{Input: 5}),
	}
	for _, c := range []struct {
		width int
		runs  []journal.Record
		want  []string // bars
	}{
		{80, runs, []string{"", "█", strings.Repeat("█", 30), "", ""}},
		{20, runs, []string{"", "█", strings.Repeat("█", 8), "", ""}},
		{19, runs, nil},
		{0, runs, nil},
		{80, runs[2:], []string{"", strings.Repeat("█", 30), ""}},
		{80, []journal.Record{costRun("one", 1, agents.Usage{})}, nil},
	} {
		sums := addUp(c.runs, "day")
		rows := [][]string{{"DAY"}}
		for _, g := range append(sums.Groups, sums.Total) {
			rows = append(rows, []string{g.Group})
		}
		chart(rows, sums, c.width)
		var got []string
		for _, row := range rows {
			got = append(got, row[1:]...)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("width %d, %d runs (-want +got):\n%s", c.width, len(c.runs), diff)
		}
	}
}

// The end of a sweep says what it cost, as far as that is known.
func TestSummaryCost(t *testing.T) {
	t.Parallel()
	silent, priced := costRun("one", 1, agents.Usage{}), costRun("two", 1, agents.Usage{CostUSD: 0.25})
	counted := costRun("three", 1, agents.Usage{Input: 12000})
	for _, c := range []struct {
		runs       []journal.Record
		table, end string
	}{
		{[]journal.Record{silent}, "ISSUE  OUTCOME    COMMITS  TOOK\none    succeeded  0        1m0s\n", ": 1 succeeded.\n"},
		{[]journal.Record{counted}, "ISSUE  OUTCOME    COMMITS  TOOK  COST\nthree  succeeded  0        1m0s  12k tok\n", ": 1 succeeded; 12k tok.\n"},
		{[]journal.Record{priced}, "ISSUE  OUTCOME    COMMITS  TOOK  COST\ntwo    succeeded  0        1m0s  $0.25\n", ": 1 succeeded; $0.25.\n"},
		{
			[]journal.Record{silent, priced}, "ISSUE  OUTCOME    COMMITS  TOOK  COST\none    succeeded  0        1m0s  -\ntwo    succeeded  0        1m0s  $0.25\n",
			": 2 succeeded; >$0.25: the cost of 1 run is not known, or not all of it.\n",
		},
	} {
		var out strings.Builder
		a := compose.New(compose.Host{Stdout: &out})
		for i := range c.runs {
			c.runs[i].Settings.Checks.Gate = []loop.Command{{Line: "true"}}
		}
		if err := summary(a, pool.Summary{Runs: c.runs}, &workView{ui: a.UI, name: func(key string) string { return key }}, false); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.HasPrefix(got, c.table) || !strings.HasSuffix(got, c.end) {
			t.Errorf("got\n%s\nwant\n%s…%s", got, c.table, c.end)
		}
	}
	if got := summaryJSON(pool.Summary{Runs: []journal.Record{counted, priced}}).Spent; got != (agents.Usage{Input: 12000, CostUSD: 0.25}) {
		t.Errorf("spent %+v", got)
	}
}
