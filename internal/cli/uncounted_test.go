package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// Nobody counts the usage of agent command. Under a budget an estimate counts instead, and all output about usage says so.
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
	const said = "the usage of agent command is unknown: each of its iterations counts as 100 tokens (estimate-tokens)"
	has(m.run(t, nil, append([]string{"doctor"}, common...)...).stdout, "warn  metering", "each of its iterations counts as 100 tokens")
	got := do(exit.Incomplete, append([]string{"work", "--commit-author=Ada <a@example.invalid>"}, common...)...)
	has(got.stderr, said)
	has(got.stdout, "over-budget", "~300 tok")
	has(do(exit.OK, "show", "one").stdout, "over-budget", "300 tokens spent of 250 (an estimate for 300 tokens)",
		"cost unknown; 300 tokens in, 0 from cache, 0 out; 300 of the tokens, or their cost, are an estimate")
	has(do(exit.OK, "cost").stdout, "300 of these tokens, or their cost, are an estimate", "estimate-tokens")
	has(do(exit.OK, "cost", "--csv").stdout, "cost_usd,estimated,unpriced\n", ",1,300,0,0,0,,300,300\n")
	has(do(exit.OK, "show", "--json", "one").stdout, `"estimated": 300`, `"unpriced": 300`)

	got = m.run(t, nil, "run", "--sandbox=none", "--agent-command=true", "--prompt=hi", "--budget-usd=3", "--max-iterations=5", "--skip-permissions")
	has(got.stderr, "200000 tokens (estimate-tokens) and $2.00 (estimate-usd)", "$4.00 spent of $3.00 (an estimate for 400000 tokens)")
	got = m.run(t, nil, "work", "--sandbox=none", "--agent-command=true", "--estimate-usd=0")
	has(got.stderr, "estimate-usd is 0")
	has(m.run(t, nil, "doctor", "--sandbox=none", "--agent-command=true").stdout,
		"ok    metering      the usage of agent command is unknown: with a budget each of its iterations counts as "+
			"200000 tokens (estimate-tokens) and $2.00 (estimate-usd)\n")
	for _, sandbox := range []string{"none", "native"} { // ralph's proxy cannot count an agent whose service it does not know
		text := m.run(t, nil, "doctor", "--sandbox="+sandbox, "--agent-command=true", "--budget-usd=3").stdout
		has(text, "warn  metering", "with --agent\n")
		if strings.Contains(text, "ralph's proxy") {
			t.Errorf("a sandbox is proposed: %s", text)
		}
	}
	if got = m.run(t, nil, "work", "--dry-run", "--sandbox=none", "--agent-command=true"); strings.Contains(got.stderr, "the usage of agent") {
		t.Errorf("without a budget: %s", got.stderr)
	}
}

// describedAgent is an agent of another program: its service is unknown.
type describedAgent struct {
	agents.Command
	about agents.Description
}

func (d describedAgent) Describe() agents.Description { return d.about }

// Doctor proposes a sandbox only where ralph's proxy there can count the agent.
func TestDoctorProposesNoSandboxThatCannotCount(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for _, c := range []struct {
		about agents.Description
		args  []string
		want  string
	}{
		{agents.Description{}, nil, "known only from its own reports"},
		{agents.Description{NoCost: true}, []string{"--budget-usd=3"}, "the cost of agent command without a model (model) is unknown"},
	} {
		got := m.run(t, func(h *compose.Host) { h.Agents = []agents.Agent{describedAgent{about: c.about}} },
			append([]string{"doctor", "--sandbox=none", "--agent=command", "--agent-command=true"}, c.args...)...)
		if !strings.Contains(got.stdout, "warn  metering") || !strings.Contains(got.stdout, c.want) || strings.Contains(got.stdout, "ralph's proxy") {
			t.Errorf("%+v: %s%s", c.about, got.stdout, got.stderr)
		}
	}
	has := m.run(t, nil, "doctor", "--sandbox=none", "--agent=claude-code")
	if !strings.Contains(has.stdout, "where ralph's proxy counts it") {
		t.Errorf("claude: %s%s", has.stdout, has.stderr)
	}
}

// Codex reports tokens and no cost. A budget in US dollars uses the model's price, or without one the estimate, which is
// announced before the start.
func TestTokensWithoutCost(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for _, key := range []string{"priced", "nameless"} {
		m.write(t, ".ralph/backlog/"+key+".md", "---\ntitle: One\nlabels: [no-human]\n---\nDo it.\n")
	}
	m.commit(t)
	bin := t.TempDir()
	program := `#!/bin/sh
cat >/dev/null
echo '{"type":"thread.started","thread_id":"0f3c2a10-0000-4000-8000-0000000000b1"}'
echo '{"type":"turn.completed","usage":{"input_tokens":1000000,"cached_input_tokens":0,"output_tokens":0}}'
`
	if err := os.WriteFile(filepath.Join(bin, "codex"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	do := func(args ...string) ran {
		t.Helper()
		return m.run(t, func(h *compose.Host) {
			h.Env = []string{"HOME=" + m.home, "PATH=" + bin + ":" + os.Getenv("PATH"), "OPENAI_API_KEY=x"}
		}, args...)
	}
	work := func(args ...string) ran {
		t.Helper()
		return do(append([]string{
			"work", "--sandbox=none", "--agent=codex", "--skip-permissions", "--resume=never", "--commit-author=Ada <a@example.invalid>",
		}, args...)...)
	}
	const nameless = "the cost of agent codex without a model (model) is unknown"
	for _, c := range []struct {
		got  ran
		want []string
		not  string
	}{
		{work("--model=gpt-5.5", "--budget-usd=8", "priced"), []string{"over-budget", " $10.00\n"}, "is unknown"},
		{do("show", "priced"), []string{"$10.00 spent of $8.00; raise", "$10.00; 2000000 tokens in"}, "~"},
		{work("--budget-usd=3", "nameless"), []string{nameless + ": each of its iterations counts as $2.00 (estimate-usd)", "over-budget", "~$4.00"}, ""},
		{do("show", "nameless"), []string{"$4.00 spent of $3.00 (an estimate for 2000000 tokens)", "~$4.00; 2000000 tokens in"}, ""},
		{work("--dry-run", "--model=unheard-of", "--budget-usd=3"), []string{"of agent codex:unheard-of without a price of its model (prices) is unknown"}, ""},
		{work("--dry-run", "--model=unheard-of", "--prices=unheard-of=1/1", "--budget-usd=3"), nil, "is unknown"},
		{work("--dry-run", "--budget-tokens=3"), nil, "is unknown"},
		{
			do("doctor", "--sandbox=none", "--agent=codex"),
			[]string{"warn  metering      " + nameless + "; with a limit in US dollars", "(budget-tokens), or --sandbox native, docker or podman"}, "",
		},
		{do("cost"), []string{"~$14.00"}, ">"},
	} {
		text := c.got.stderr + c.got.stdout
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%q is missing in\n%s", w, text)
			}
		}
		if c.not != "" && strings.Contains(text, c.not) {
			t.Errorf("%q stands in\n%s", c.not, text)
		}
	}
}
