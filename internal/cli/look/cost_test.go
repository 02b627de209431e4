package look

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/clitest"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Each agent of a run is charged for its own usage; usage outside of iterations counts for the last agent.
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
			list = append(list, fmt.Sprintf("%s %d runs %s", g.Group, g.Runs, CostText(g.Usage)))
		}
		got := fmt.Sprintf("%s; %d runs %s", strings.Join(list, ", "), sums.Total.Runs, CostText(sums.Total.Usage))
		if got != want || sums.Total.Unknown > 0 {
			t.Errorf("by %s: %s", by, got)
		}
	}
}

// Usage that only an agent reports appears in the agent's row and in the total.
func TestCostUnseen(t *testing.T) {
	t.Parallel()
	lie, review := agents.Usage{Input: 90, CostUSD: 9}, agents.Usage{Output: 1}
	r := journal.Record{Run: journal.Run{Kind: journal.KindIssue, Agent: "a"}, State: journal.State{Facts: journal.Facts{
		Usage:       agents.Usage{Input: 110, Output: 1, CostUSD: 11},
		Iterations:  []loop.Iteration{{Agent: "a", Usage: agents.Usage{Input: 100, CostUSD: 10}, Unmetered: lie}, {Agent: "b", Usage: agents.Usage{Input: 10, CostUSD: 1}}},
		ReviewSpend: journal.ReviewSpend{Unseen: review},
	}}}
	sums := addUp([]journal.Record{r}, "agent")
	if g := sums.Groups; len(g) != 2 || g[0].Unseen != lie || g[1].Unseen != review || sums.Total.Unseen != lie.Add(review) {
		t.Errorf("%+v", sums)
	}
	var out strings.Builder
	costTable(screen.New(&out, io.Discard, nil), sums)
	if !strings.Contains(out.String(), "reported only by the agents, and not stated in the answers of their services: $9.00; 90 tokens in, 0 from cache, 1 out") {
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
		"ralph died": {func(r *journal.Record) {
			r.Facts = journal.Facts{Stop: journal.StopCrash, StoppedStage: journal.StageWork}
		}, 1},
		"cut before": {func(r *journal.Record) {
			r.Facts = journal.Facts{Stop: journal.StopAsked, StoppedStage: journal.StagePrepare}
		}, 0},
		"setup failed":   {func(r *journal.Record) { r.Facts = journal.Facts{End: loop.EndSetup} }, 0},
		"merged by hand": {func(r *journal.Record) { r.Settings.Attended, r.Facts = true, journal.Facts{} }, 0},
		"command":        {func(r *journal.Record) { r.Kind, r.Facts = journal.KindCommand, journal.Facts{} }, 0},
		"no agent":       {func(r *journal.Record) { r.Agent, r.Facts = "", journal.Facts{} }, 0},
	} {
		r := clitest.CostRun("k", 1, agents.Usage{})
		c.change(&r)
		if got := addUp([]journal.Record{r}, "day").Total.Unknown; got != c.want {
			t.Errorf("%s: %d runs without cost, want %d", name, got, c.want)
		}
	}
}

// A merge by a person does not count as a run, but the usage of its review counts.
func TestCostOfMergesByAPerson(t *testing.T) {
	t.Parallel()
	run := clitest.CostRun("one", 1, agents.Usage{Input: 3, CostUSD: 1})
	merge, reviewed := clitest.CostRun("one", 1, agents.Usage{}), clitest.CostRun("two", 1, agents.Usage{Input: 2, CostUSD: 2})
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

// The chart has a bar for each group and none for the total. It is left out if it would be unreadable.
func TestCostChart(t *testing.T) {
	t.Parallel()
	runs := []journal.Record{
		clitest.CostRun("one", 1, agents.Usage{Input: 9, CostUSD: 0.01}), clitest.CostRun("two", 2, agents.Usage{CostUSD: 4}), clitest.CostRun("three", 3, agents.Usage{Input: 5}),
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
		{80, []journal.Record{clitest.CostRun("one", 1, agents.Usage{})}, nil},
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

// The cost of a run is known if all of its requests were refused, but not if an iteration reports nothing or may be lost.
func TestFreeRunsHaveACost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		f    journal.Facts
		want int
	}{
		"refused":        {journal.Facts{Iterations: []loop.Iteration{{UsedNothing: true}, {UsedNothing: true}}}, 0},
		"one is unknown": {journal.Facts{Iterations: []loop.Iteration{{UsedNothing: true}, {}}}, 1},
		"unknown":        {journal.Facts{Iterations: []loop.Iteration{{}}}, 1},
		"it died":        {journal.Facts{Stop: journal.StopCrash}, 1},
	} {
		c.f.UsedNothing = journal.UsedNothing(c.f.Iterations)
		sums := addUp([]journal.Record{{Run: journal.Run{Kind: journal.KindIssue, Agent: "a"}, State: journal.State{Facts: c.f}}}, "day")
		if sums.Total.Unknown != c.want {
			t.Errorf("%s: %d unknown, want %d", name, sums.Total.Unknown, c.want)
		}
	}
}
