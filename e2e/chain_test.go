package e2e

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/e2e/mockmodel"
)

// usedUp has a service whose limit ends in 2040, and models that commit a file and then finish or stall.
var usedUp = mockmodel.Scenarios{
	"used-up": {Fault: &mockmodel.Fault{Status: 429, Type: "rate_limit_error", Message: "Claude AI usage limit reached|2209000000", LimitEnd: "2209000000"}},
	"stalled": {Steps: []mockmodel.Step{
		{Calls: []mockmodel.Call{{Command: "echo half > half.txt && git add half.txt && git commit -qm Half"}}},
		{Text: "Working.", Hang: true},
	}},
}

// The real claude reaches its limit, and the real codex continues in the same worktree and sandbox. Then ralph is killed.
// The next process knows the limit, does not call claude again, and codex finishes on top of its earlier commits.
func TestRealAgentsInAChain(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the sandbox is Linux's")
	}
	model, url := serveModel(t, mockmodel.Options{Scenarios: usedUp})
	asked := func(path string) (n int) {
		for _, q := range model.Requests() {
			if strings.HasSuffix(q.Path, path) {
				n++
			}
		}
		return n
	}
	s, r := newScene(t, doIt), newRepository(t)
	key := r.backlog(t, 1)[0]
	env := func(scenario string) []string {
		return []string{
			"PATH=" + filepath.Dir(agentProgram(t, "claude")) + ":" + os.Getenv("PATH"),
			"ANTHROPIC_API_KEY=" + secret, "ANTHROPIC_BASE_URL=" + url + "/s/used-up",
			"OPENAI_API_KEY=" + secret, "OPENAI_BASE_URL=" + url + "/s/" + scenario + "/v1",
			"RALPH_AGENT=claude-code", "RALPH_AGENT_COMMAND=", "RALPH_SANDBOX=native", "RALPH_FALLBACK=codex:gpt-5.5",
		}
	}
	args := []string{"work", "--model", "sonnet", "--gate", "test -f hello.txt"}
	p := s.start(t, r, env("stalled"), args...)
	await(t, "codex to be in the middle of its work", func() bool { return asked("/responses") >= 2 })
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.end(t)
	before := asked("/messages")
	if before == 0 {
		t.Error("claude was not asked first")
	}
	if got := s.start(t, r, env("write"), args...).end(t); got != 0 {
		t.Errorf("status %d", got)
	}
	if n := asked("/messages"); n != before {
		t.Errorf("claude was asked %d times more before its limit ends", n-before)
	}
	if n := r.commits(t, "ralph/"+key); n != 2 {
		t.Errorf("%d commits, not codex's two", n)
	}
	if report := r.issue(t, key); !strings.Contains(report, "Agent: codex (`gpt-5.5`), sandbox: native") {
		t.Errorf("the report:\n%s", report)
	}
	p = s.start(t, r, env("write"), "status")
	if status, out := p.end(t), p.out.String(); status != 0 || !strings.Contains(out, "Agent claude-code:sonnet is parked until 2040-01-01") || !strings.Contains(out, "its limit is reached (in a run of "+key+")") {
		t.Errorf("status %d:\n%s", status, out)
	}
	if v := s.status(t, r, env("write")); len(v.Parked) != 1 || v.Parked[0].Agent != "claude-code" || v.Parked[0].Model != "sonnet" ||
		v.Parked[0].Class != "rate-limit" || !strings.HasPrefix(v.Parked[0].Until, "2040-01-01") || len(v.Caps) != 0 {
		t.Errorf("status in JSON: %+v", v)
	}
	s.clean(t, r)
}
