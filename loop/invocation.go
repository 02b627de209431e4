package loop

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/internal/proc"
)

const expandOutput = 1 << 20 // maximum bytes that a command in a prompt may print

// PromptVars returns the built-in values of one iteration for Prompt.Render: iteration, max_iterations, feedback, gate and
// signal. With iteration 1 and no feedback the rendered prompt is exactly the first one that a run would send.
func (c Config) PromptVars(iteration int, feedback string) map[string]string {
	c = c.withDefaults()
	if feedback != "" {
		feedback = "## What happened last time\n\n" + feedback
	}
	return map[string]string{
		"iteration":      strconv.Itoa(iteration),
		"max_iterations": strconv.Itoa(c.MaxIterations),
		"feedback":       feedback,
		"gate":           gateSection(c.Gate),
		"signal":         c.Signals[0],
	}
}

// gateSection lists for the agent the checks that its work must pass.
func gateSection(gate []Command) string {
	if len(gate) == 0 {
		return ""
	}
	var s strings.Builder
	s.WriteString("## Checks\n\nRalph runs these itself after you end; all must pass. Run them before you say that you are done.\n\n")
	for _, cmd := range gate {
		s.WriteString("    " + strings.ReplaceAll(cmd.Line, "\n", "\n    ") + "\n")
	}
	return s.String()
}

// invocation builds the agent's command line, with the whole prompt or, for a resumed session, with only the feedback.
func (r *runner) invocation(ctx context.Context, n int, feedback, sessionID string) (agents.Invocation, error) {
	vars := r.c.PromptVars(n, feedback)
	prompt, err := feedbackResumed(vars), error(nil)
	if sessionID == "" {
		if prompt, err = r.c.Prompt.Render(ctx, vars, r.runPromptCommand); err != nil {
			return agents.Invocation{}, err
		}
	}
	if r.c.Output != nil && !strings.Contains(prompt, "<"+r.c.Output.Tag+">") {
		return agents.Invocation{}, fmt.Errorf("the prompt does not name the output tag <%s>", r.c.Output.Tag)
	}
	r.prompt = fmt.Sprintf("%x", sha256.Sum256([]byte(prompt)))
	return r.c.Agent.Invocation(agents.Request{Prompt: prompt, Options: r.c.Options, Session: sessionID, Vars: r.runVars(vars)})
}

// runVars returns the variables about the run that every agent gets.
func (r *runner) runVars(vars map[string]string) []string {
	values := map[string]string{}
	maps.Copy(values, r.c.Prompt.Builtin)
	maps.Copy(values, vars)
	var env []string
	for _, key := range []string{"issue_key", "issue_title", "issue_url", "branch", "base", "iteration", "max_iterations"} {
		if value, ok := values[key]; ok {
			env = append(env, "RALPH_"+strings.ToUpper(key)+"="+neutral.Excerpt(value, eventText))
		}
	}
	return env
}

// runPromptCommand runs one of the prompt's commands in the sandbox.
func (r *runner) runPromptCommand(ctx context.Context, line string, env []string) (string, error) {
	r.importPending = true
	out, errs := proc.NewTail(expandOutput), proc.NewTail(tailKept)
	exit, timedOut, err := r.shell(ctx, shell{
		line: line, env: env, timeout: r.c.Timers.PromptExpand, stdout: out, stderr: errs,
	})
	switch {
	case err != nil:
		return "", err
	case timedOut:
		return "", fmt.Errorf("it did not end within %s", r.c.Timers.PromptExpand)
	case !exit.OK():
		return "", fmt.Errorf("exit status %d: %s", exit.Code, outputEnd(errs.String()))
	case out.Total() > expandOutput:
		return "", errors.New("it printed more than 1 MiB")
	}
	return out.String(), nil
}
