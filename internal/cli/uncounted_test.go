package cli

import (
	"strings"
	"testing"
)

// Nobody counts what a command uses. Under a budget an estimate counts, which everything that shows usage says.
func TestEstimateEndsARun(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\nDo it.\n")
	m.commit(t)
	common := []string{"--sandbox=none", "--agent-command=true", "--estimate-tokens=100", "--budget-tokens=250"}
	do := func(status int, args ...string) ran {
		t.Helper()
		got := m.run(t, nil, args...)
		if got.status != status {
			t.Fatalf("%v: %+v", args, got)
		}
		return got
	}
	has := func(text string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%q is missing in\n%s", w, text)
			}
		}
	}
	const said = "nobody counts what agent command uses: each of its iterations counts as 100 tokens (estimate-tokens)"
	has(m.run(t, nil, append([]string{"doctor"}, common...)...).stdout, "warn  metering", "each of its iterations counts as 100 tokens")
	got := do(exitIncomplete, append([]string{"work", "--commit-author=Ada <a@example.invalid>"}, common...)...)
	has(got.stderr, said)
	has(got.stdout, "over-budget", "~300 tok")
	has(do(exitOK, "show", "one").stdout, "over-budget", "300 tokens spent of 250 (an estimate for 300 tokens)",
		"cost unknown; 300 tokens in, 0 from cache, 0 out; 300 of the tokens are an estimate")
	has(do(exitOK, "cost").stdout, "300 tokens of these are an estimate", "estimate-tokens")
	has(do(exitOK, "cost", "--csv").stdout, "cost_usd,estimated\n", ",1,300,0,0,0,,300\n")
	has(do(exitOK, "show", "--json", "one").stdout, `"estimated": 300`, `"unpriced": 300`)

	got = m.run(t, nil, "run", "--sandbox=none", "--agent-command=true", "--prompt=hi", "--budget-usd=3", "--max-iterations=5", "--skip-permissions")
	has(got.stderr, "200000 tokens (estimate-tokens) and $2.00 (estimate-usd)", "$4.00 spent of $3.00 (an estimate for 400000 tokens)")
	got = m.run(t, nil, "work", "--sandbox=none", "--agent-command=true", "--estimate-usd=0")
	has(got.stderr, "estimate-usd is 0")
	if got = m.run(t, nil, "work", "--dry-run", "--sandbox=none", "--agent-command=true"); strings.Contains(got.stderr, "nobody counts") {
		t.Errorf("without a budget: %s", got.stderr)
	}
}
