package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/clitest"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/pool/parking"
)

// The status tells how many issues run at a time while a model service refuses requests, and marks sums with estimates or
// without a price.
func TestStatusOfLimits(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\n---\n")
	m.commit(t)
	state := filepath.Join(m.root, "state")
	status := func(args ...string) string {
		t.Helper()
		got := m.run(t, func(h *compose.Host) { h.Env = append(h.Env, "RALPH_BUDGET_USD_DAY=5") }, append([]string{"status", "--state-dir=" + state}, args...)...)
		if got.status != exit.OK {
			t.Errorf("%+v", got)
		}
		return got.stdout
	}
	status()
	store, folder := journalIn(t, state, "*")
	for key, used := range map[string]agents.Usage{
		"one": {Input: 10, CostUSD: 1, Estimated: 10}, "two": {Input: 20, CostUSD: 0.5}, "three": {Input: 30, Unpriced: 30},
	} {
		r := clitest.CostRun(key, 1, used)
		r.Started, r.Ended = time.Now(), time.Now()
		if err := store.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	process, err := proc.Started(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	slow := parking.Slow{Agent: "codex", Limit: 2, Since: time.Now(), Most: 4, PID: os.Getpid(), Process: process}
	if err := slow.Write(filepath.Join(folder, "slow")); err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string][]string{
		status(): {
			"Agent codex: its model service refuses requests, so ralph now works at most 2 issues at once instead of 4.\n", "Spent today (UTC): >~$1.50 of $5.00.\n",
		},
		status("--json"): {`"parallel": 2,`, `"most": 4,`, `"runs_without_cost": 1`, `"estimated": 10`, `"unpriced": 30`},
	} {
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%q is missing in\n%s", w, got)
			}
		}
	}
}
