package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/pool/feedback"
)

// prompt looks whether the template can be filled in, and tells the agent what it has to know.
func (d *doctor) prompt(ctx context.Context, p *parts) {
	prompt, err := p.prompt(ctx)
	if err == nil && prompt.Template == "" {
		d.ok("prompt", "the built-in one; your own would be .ralph/prompt.md")
		return
	}
	if err == nil {
		err = prompt.Check(feedback.PromptKeys())
	}
	if err != nil {
		d.fail("prompt", strings.ReplaceAll(err.Error(), "\n", "; "), "correct the template, or move it away for the built-in one; `ralph prompt KEY` shows what comes of it")
		return
	}
	uses := func(keys ...string) bool {
		looked := prompt
		looked.Args = make(map[string]string, len(keys))
		for _, key := range keys {
			looked.Args[key] = ""
		}
		return len(looked.Unused()) < len(keys)
	}
	says := func(text string) bool { return strings.Contains(prompt.Template, text) }
	good := true
	if !uses("signal") && !slices.ContainsFunc(p.CompletionSignal, says) {
		good = false
		d.warn("prompt", prompt.Name+" does not say {{signal}}: the agent is not told how to say that it is done, and no run will succeed",
			"write into it: when all is done, say {{signal}}")
	}
	if !uses("issue", "issue_key", "issue_id", "issue_title", "issue_body", "issue_url") && !says("RALPH_ISSUE_") {
		good = false
		d.warn("prompt", prompt.Name+" has nothing of the issue in it: the agent is told the same of every one", "write {{issue}} into it")
	}
	if good {
		d.ok("prompt", prompt.Name)
	}
}
