package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/e2e/mockmodel"
)

// statusJSON has the fields of `ralph status --json` that the test reads.
type statusJSON struct {
	Runs []struct {
		State string
	}
	Caps []struct {
		Of, Agent  string
		LeftTokens *int64   `json:"left_tokens"`
		LeftUSD    *float64 `json:"left_usd"`
		Until      string
		Spent      *struct{ Input, Output int64 }
	}
	Parked []struct{ Agent, Model, Class, Until string }
}

func (s *scene) status(t *testing.T, r repository, env []string) (v statusJSON) {
	t.Helper()
	p := s.start(t, r, env, "status", "--json")
	if status := p.end(t); status != 0 {
		t.Fatalf("status %d:\n%s", status, p.out.String())
	}
	if err := json.Unmarshal(p.out.Bytes(), &v); err != nil {
		t.Fatalf("%v in %s", err, p.out.String())
	}
	return v
}

// The real claude never ends. When it has spent its own budget, during its iteration, the real codex continues from its
// commits. Claude is not parked, because it was available.
func TestNextAgentGoesOnWhenABudgetIsSpent(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the sandbox is Linux's")
	}
	model, url := serveModel(t, mockmodel.Options{Scenarios: runaway})
	s, r := newScene(t, doIt), newRepository(t)
	key := r.backlog(t, 1)[0]
	env := []string{
		"PATH=" + filepath.Dir(agentProgram(t, "claude")) + ":" + os.Getenv("PATH"),
		"ANTHROPIC_API_KEY=" + secret, "ANTHROPIC_BASE_URL=" + url + "/s/runaway",
		"OPENAI_API_KEY=" + secret, "OPENAI_BASE_URL=" + url + "/s/write/v1",
		"RALPH_AGENT=claude-code", "RALPH_MODEL=sonnet", "RALPH_AGENT_COMMAND=", "RALPH_SANDBOX=native", "RALPH_FALLBACK=codex:gpt-5.5",
		"RALPH_BUDGET_AGENTS=claude-code:sonnet=0/3000", "RALPH_BUDGET_TOKENS_DAY=90000", "RALPH_BUDGET_USD_ITERATION=7.5",
	}
	p := s.start(t, r, env, "work", "--gate", "test -f hello.txt")
	if got := p.end(t); got != 0 {
		t.Errorf("status %d:\n%s", got, p.out.String())
	}
	asked := 0
	for _, q := range model.Requests() {
		if strings.HasSuffix(q.Path, "/messages") {
			asked++
		}
	}
	if most := 3000/tokensOfAnswer + 1; asked != most {
		t.Errorf("claude was answered %d times, %d are within its budget", asked, most)
	}
	if report := r.issue(t, key); !strings.Contains(report, "Agent: claude-code (`sonnet`), then codex (`gpt-5.5`), sandbox: native") {
		t.Errorf("the report:\n%s", report)
	}
	if out := p.out.String(); !strings.Contains(out, "agent claude-code:sonnet has used up its own budget; codex:gpt-5.5 continues") {
		t.Errorf("it said:\n%s", out)
	}
	v := s.status(t, r, env)
	if len(v.Runs) != 1 || len(v.Parked) != 0 || len(v.Caps) != 3 {
		t.Fatalf("status %+v", v)
	}
	day, iteration, own := v.Caps[0], v.Caps[1], v.Caps[2]
	if day.Of != "day" || day.Spent == nil || day.LeftTokens == nil || *day.LeftTokens >= 90000-3000 || day.LeftUSD != nil || day.Until == "" {
		t.Errorf("day %+v", day)
	}
	if iteration.Of != "iteration" || iteration.LeftUSD == nil || *iteration.LeftUSD != 7.5 || iteration.Spent != nil {
		t.Errorf("iteration %+v", iteration)
	}
	if own.Of != "agent" || own.Agent != "claude-code:sonnet" || own.LeftTokens == nil || *own.LeftTokens != 3000 {
		t.Errorf("agent %+v", own)
	}
	p = s.start(t, r, append(env, "RALPH_BUDGET_AGENTS=claude-code:opus=1"), "work", "--dry-run")
	if got, out := p.end(t), p.out.String(); got != 2 || !strings.Contains(out, "do not use claude-code:opus; their agents: claude-code:sonnet, codex:gpt-5.5") {
		t.Errorf("status %d:\n%s", got, out)
	}
	s.clean(t, r)
}
