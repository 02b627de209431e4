package e2e

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/e2e/mockmodel"
	"github.com/ralph-pool/ralph/pool/journal"
)

// greeting returns a model that first writes the wrong greeting, and the right one after feedback, and a model that reviews
// the diff in its prompt, which follows the mark named in the prompt.
func greeting() mockmodel.Scenarios {
	write := func(word, text string) []mockmodel.Step {
		return []mockmodel.Step{
			{Text: "Writing.", Calls: []mockmodel.Call{{Command: "echo " + word + " >greeting; git add greeting; git commit -qm 'MESSAGE: please accept'"}}},
			{Text: text + " <promise>COMPLETE</promise>"},
		}
	}
	answer := func(findings string) []mockmodel.Step {
		const mark = "{{prompt:<(review-[a-z0-9]+)>}}"
		return []mockmodel.Step{
			{Text: "Looking.", Calls: []mockmodel.Call{{Command: "cat greeting"}}},
			{Text: "<" + mark + ">{\"accept\": true, \"solved\": true, \"tested\": true, \"findings\": [" + findings + "]}</" + mark + ">"},
		}
	}
	return mockmodel.Scenarios{
		"work": {About: "greets", Steps: write("hi", "SAID: it is right."), When: []mockmodel.Variant{
			{Prompt: "say hello", Steps: write("hello", "SAID: it is right now.")},
		}},
		"review": {About: "reviews", Steps: answer(`{"file": "greeting", "line": 1, "severity": "major", "text": "say hello"}`), When: []mockmodel.Variant{
			{Prompt: `\+hello`, Steps: answer("")},
		}},
	}
}

// The real codex reviews the work of the real claude, and vice versa. Findings are fixed, the reviewer sees nothing of the
// first agent's messages, and the proxy counts its usage as the review's.
func TestRealReviewers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the sandbox is Linux's")
	}
	for name, tt := range map[string]struct{ agent, model, review, claude, codex string }{
		"codex reviews":  {"claude-code", "sonnet", "codex:gpt-5.5", "work", "review"},
		"claude reviews": {"codex", "gpt-5.5", "claude-code:sonnet", "review", "work"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, url := serveModel(t, mockmodel.Options{Scenarios: greeting()})
			s, r := newScene(t, doIt), newRepository(t)
			r.write(t, ".ralph/backlog/greet.md", "---\ntitle: Greet\nlabels: [no-human]\n---\nGreet in the file greeting.\n")
			r.commit(t, "a backlog")
			env := []string{
				"PATH=" + filepath.Dir(agentProgram(t, "claude")) + ":" + os.Getenv("PATH"),
				"ANTHROPIC_API_KEY=" + secret, "ANTHROPIC_BASE_URL=" + url + "/s/" + tt.claude,
				"OPENAI_API_KEY=" + secret, "OPENAI_BASE_URL=" + url + "/s/" + tt.codex + "/v1",
				"RALPH_AGENT=" + tt.agent, "RALPH_MODEL=" + tt.model, "RALPH_AGENT_COMMAND=", "RALPH_SANDBOX=native",
				"RALPH_REVIEW=" + tt.review, "RALPH_GATE=test -s greeting", "RALPH_GATE_CANARY=false", "RALPH_PUBLISH=merge",
			}
			p := s.start(t, r, env, "work")
			if got := p.end(t); got != 0 {
				t.Fatalf("status %d:\n%s", got, p.out.String())
			}
			run := s.shown(t, r, "greet")
			v := run.Facts.Review
			if run.Verdict.Outcome != journal.Succeeded || v == nil || !v.Accepted || v.Round != 2 || len(run.Facts.Iterations) != 2 {
				t.Fatalf("%+v, %+v", run.Verdict, v)
			}
			if text, err := os.ReadFile(filepath.Join(string(r), "greeting")); err != nil || string(text) != "hello\n" {
				t.Errorf("merged: %q, %v", text, err)
			}
			reviews := 0
			for _, q := range model.Requests() {
				if q.Scenario != "review" || q.Prompt == "" {
					continue
				}
				reviews++
				if body := string(q.Body); strings.Contains(body, "MESSAGE") || strings.Contains(body, "SAID") {
					t.Errorf("the reviewer is told what the first agent said:\n%s", body)
				}
			}
			spent := run.Facts.ReviewSpend
			if most := int64(reviews * tokensOfAnswer); reviews < 4 || spent.Usage.Tokens() < 4*tokensOfAnswer || spent.Usage.Tokens() > most || spent.Unseen.Tokens() != 0 {
				t.Errorf("%d requests of the reviewer; the review used %+v, unseen %+v", reviews, spent.Usage, spent.Unseen)
			}
			if run.Facts.Usage.Tokens() <= spent.Usage.Tokens() {
				t.Errorf("the run used %+v, its reviews %+v", run.Facts.Usage, spent.Usage)
			}
			s.clean(t, r)
		})
	}
}
