package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/e2e/mockmodel"
)

// runaway is a model that never ends.
var runaway = mockmodel.Scenarios{"runaway": {About: "commits for ever", Steps: []mockmodel.Step{
	{Text: "One more.", Calls: []mockmodel.Call{{Command: "echo more >>more.txt; git add more.txt; git commit -qm more"}}},
}}}

// tokensOfAnswer is the number of tokens that each answer of the scripted model states, besides those from its cache.
const tokensOfAnswer = 1242

// The real agents never end by themselves. Ralph ends them during their first iteration, when the usage stated in the model's
// answers reaches the budget, and keeps their commits. A ralph that replaces a killed one does not start a new budget.
func TestBudgetEndsARunawayAgent(t *testing.T) {
	t.Parallel()
	for agent, tt := range map[string]struct{ upstream, key, program, model string }{
		"claude-code": {"", "ANTHROPIC_API_KEY", "claude", "sonnet"},
		"codex":       {"/v1", "OPENAI_API_KEY", "codex", "gpt-5.5"},
	} {
		for _, killed := range []bool{false, true} {
			name := map[bool]string{true: ", ralph is killed", false: ""}[killed]
			t.Run(agent+name, func(t *testing.T) {
				t.Parallel()
				model, url := serveModel(t, mockmodel.Options{Scenario: "runaway", Scenarios: runaway})
				answers := func() (n int) {
					for _, q := range model.Requests() {
						if strings.HasSuffix(q.Path, "/messages") || strings.HasSuffix(q.Path, "/responses") {
							n++
						}
					}
					return n
				}
				s, r := newScene(t, doIt), newRepository(t)
				key := r.backlog(t, 1)[0]
				env := []string{
					"PATH=" + filepath.Dir(agentProgram(t, tt.program)) + ":" + os.Getenv("PATH"),
					tt.key + "=" + secret, "RALPH_AGENT=" + agent, "RALPH_AGENT_COMMAND=", "RALPH_SANDBOX=native",
					"RALPH_BUDGET_TOKENS=6000",
				}
				args := []string{"work", "--model", tt.model, "--agent-upstream", url + tt.upstream}
				most := 6000/tokensOfAnswer + 1
				p := s.start(t, r, env, args...)
				if killed {
					await(t, "the second answer", func() bool { return answers() >= 3 })
					if err := p.Process.Kill(); err != nil {
						t.Fatal(err)
					}
					p.end(t)
					most += 2 // the last answers may have reached nobody; a new budget would allow three more
					p = s.start(t, r, env, args...)
				}
				if got := p.end(t); got != 3 {
					t.Errorf("status %d, want 3", got)
				}
				if n := answers(); n > most || !killed && n < most {
					t.Errorf("the model has answered %d times, at most %d are within the budget", n, most)
				}
				if report := r.issue(t, key); strings.Count(report, "**ralph: over-budget**") != 1 || !strings.Contains(report, "tokens spent of ") {
					t.Errorf("the issue says:\n%s", report)
				}
				if n := r.commits(t, "ralph/"+key); n == 0 {
					t.Error("no commit is kept")
				}
			})
		}
	}
}

// A daily cap holds for all workers, and for a ralph that replaces a killed one. It is not the fault of an issue: no issue
// goes to a person, and a sweep continues once the cap is raised.
func TestDayCapOutlivesRalph(t *testing.T) {
	t.Parallel()
	model, url := serveModel(t, mockmodel.Options{Scenario: "runaway", Scenarios: runaway})
	answers := func() (n int) {
		for _, q := range model.Requests() {
			if strings.HasSuffix(q.Path, "/messages") {
				n++
			}
		}
		return n
	}
	s, r := newScene(t, doIt), newRepository(t)
	keys := r.backlog(t, 2)
	env := []string{
		"PATH=" + filepath.Dir(agentProgram(t, "claude")) + ":" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=" + secret,
		"RALPH_AGENT=claude-code", "RALPH_AGENT_COMMAND=", "RALPH_SANDBOX=native", "RALPH_BUDGET_TOKENS_DAY=8000",
	}
	args := []string{"work", "--parallel", "2", "--model", "sonnet", "--agent-upstream", url}
	most := 8000/tokensOfAnswer + 1
	p := s.start(t, r, env, args...)
	await(t, "the third answer", func() bool { return answers() >= 4 })
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.end(t)
	if got := s.start(t, r, env, args...).end(t); got != 3 && got != 4 {
		t.Errorf("status %d, want 3 or 4", got)
	}
	// Answers on their way to the ralph that died, one for each worker, reached nobody.
	if n := answers(); n < most || n > most+2 {
		t.Errorf("the model has answered %d times, %d are within the cap", n, most)
	}
	before := answers()
	if got := s.start(t, r, env, args...).end(t); got != 4 || answers() != before {
		t.Errorf("status %d, want 4; %d more answers", got, answers()-before)
	}
	for _, key := range keys {
		if text := r.issue(t, key); strings.Contains(text, "needs-human") {
			t.Errorf("the issue says:\n%s", text)
		}
	}
	env[len(env)-1] = "RALPH_BUDGET_TOKENS_DAY=12000"
	if got := s.start(t, r, env, args...).end(t); got != 3 || answers() == before {
		t.Errorf("status %d, want 3, and more answers than %d", got, before)
	}
}
