package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/work"
	"github.com/ralph-pool/ralph/loop/prompt"
)

// prompt checks that the template is valid, and contains the completion signal and the issue.
func (d *doctor) prompt(ctx context.Context, p *compose.Parts) {
	own, err := p.Prompt(ctx)
	if err == nil && own.Template == "" {
		d.ok("prompt", "the built-in one; for your own write .ralph/prompt.md")
		return
	}
	if err == nil {
		err = own.Check(prompt.Keys())
	}
	if err != nil {
		d.fail("prompt", strings.ReplaceAll(err.Error(), "\n", "; "), "correct the template, or move it away to use the built-in one; "+
			"`ralph prompt KEY` shows the result")
		return
	}
	says := func(text string) bool { return strings.Contains(own.Template, text) }
	issue := []string{"issue", "issue_key", "issue_id", "issue_title", "issue_body", "issue_url"}
	good := true
	if !own.Uses("signal") && !slices.ContainsFunc(p.CompletionSignal, says) {
		good = false
		d.warn("prompt", own.Name+" has no {{signal}}: the agent does not learn how to say that it is done, so no run can succeed",
			"add to it: when all is done, write {{signal}}")
	}
	if !slices.ContainsFunc(issue, own.Uses) && !says("RALPH_ISSUE_") {
		good = false
		d.warn("prompt", own.Name+" does not use the issue: the agent gets the same prompt for every issue", "add {{issue}} to it")
	}
	if good {
		d.ok("prompt", own.Name)
	}
}

// copied checks the files that are copied into worktrees.
func (d *doctor) copied(p *compose.Parts) {
	for _, problem := range work.NotToCopy(p) {
		d.fail("copy", problem, work.FixCopy)
	}
}
