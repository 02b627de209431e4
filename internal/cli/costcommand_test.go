package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/clitest"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/pool/journal"
)

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
	if got := run("cost"); got != "No runs recorded.\n" {
		t.Errorf("before the first run: %q", got)
	}
	if got := run("cost", "--since=1h"); got != "No runs recorded since then.\n" {
		t.Errorf("before the first run: %q", got)
	}
	if got := run("cost", "--csv"); got != "group,runs,runs_without_cost,input,output,cache_read,cache_write,cost_usd,estimated,unpriced\n" {
		t.Errorf("before the first run: %q", got)
	}
	store, _ := journalIn(t, state, "*")
	save := func(r journal.Record) {
		t.Helper()
		if err := store.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	silent := clitest.CostRun("one", 1, agents.Usage{})
	save(silent)
	if got, want := run("cost"), "DAY         RUNS  UNKNOWN\n2026-03-01  1     1\ntotal       1     1\n"+
		"The cost of 1 run is unknown or incomplete: neither the agent nor a price gives it.\n"; got != want {
		t.Errorf("nothing known:\n%s\nwant\n%s", got, want)
	}
	if got := run("status"); strings.Contains(got, "COST") || strings.Contains(got, "$") {
		t.Errorf("nothing known:\n%s", got)
	}
	save(clitest.CostRun("two", 2, agents.Usage{Input: 2000, Output: 500, Unpriced: 2500}))
	priced := clitest.CostRun("one", 3, agents.Usage{Input: 1000, CacheWrite: 200, CacheRead: 34567, Output: 300, CostUSD: 0.25})
	priced.Model, priced.Verdict.Outcome = "=m\x1b[2J", journal.GateFailed
	save(priced)
	for _, c := range []struct{ args, want string }{
		{"cost", `DAY         RUNS  IN    OUT  CACHE  COST    UNKNOWN
2026-03-01  1     -     -    -      -       1
2026-03-02  1     2.0k  500  -      -       1
2026-03-03  1     1.2k  300  35k    $0.25   -
total       3     3.2k  800  35k    >$0.25  2
The cost of 2 runs is unknown or incomplete: neither the agent nor a price gives it.
`},
		{"cost --by issue --since 2026-03-02", `ISSUE  RUNS  IN    OUT  CACHE  COST    UNKNOWN
one    1     1.2k  300  35k    $0.25   -
two    1     2.0k  500  -      -       1
total  2     3.2k  800  35k    >$0.25  1
The cost of 1 run is unknown or incomplete: neither the agent nor a price gives it.
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
	// Time and cost of a merge by a person do not count for the issue.
	merge := clitest.CostRun("one", 4, agents.Usage{})
	merge.Settings.Attended, merge.Ended = true, merge.Started.Add(time.Second)
	save(merge)
	if got := run("status"); !strings.Contains(got, "  1m0s  $0.25\n") || strings.Contains(got, "  1s  ") {
		t.Errorf("after a merge:\n%s", got)
	}
}
