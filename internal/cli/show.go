package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/agents"
)

func newShowCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show KEY", Short: "Tell all about an issue's runs, and what to type next",
		Example: "  ralph show fix-login\n  ralph show fix-login --json",
		GroupID: groupLook, Args: oneIssue, ValidArgsFunction: a.completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error { return runShow(cmd, a, known(args[0])) },
	}
	a.addJSON(cmd)
	a.bind(cmd, "tracker", "local.dir", "remote", "state-dir", "base")
	return cmd
}

func runShow(cmd *cobra.Command, a *app, key string) (err error) {
	p, err := a.open(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	runs, err := p.runsOf(cmd.Context(), key)
	if err != nil {
		return err
	}
	var states []runState
	for _, r := range runs {
		states = append(states, stateOf(r))
	}
	now, err := p.work(cmd.Context(), states[len(states)-1])
	if a.json {
		shown := make([]shownRun, len(states))
		for i, s := range states {
			shown[i].runState = s
		}
		if err == nil {
			shown[len(shown)-1].Now = &now
		}
		return errors.Join(err, a.ui.json(shown))
	}
	name := p.names(cmd.Context())
	for i, s := range states {
		if i > 0 {
			a.ui.printf("\n")
		}
		a.showRun(s, name(s.Key))
	}
	if err == nil {
		a.showWork(now)
	}
	return err
}

// showRun prints one run.
func (a *app) showRun(s runState, name string) {
	v := s.Verdict
	line := func(name, format string, args ...any) {
		a.ui.printf("  %-11s %s\n", name, cleanLine(fmt.Sprintf(format, args...)))
	}
	a.ui.printf("%s  %s\n", a.ui.paint(bold, cleanLine(name)), cleanLine(s.Title))
	line("run", "%s, attempt %d, %s", s.Run, s.Attempt, s.State)
	if v.Reason != "" {
		line("reason", "%s", v.Reason)
	}
	took := time.Since(s.Started)
	if !s.Ended.IsZero() {
		took = s.Ended.Sub(s.Started)
	}
	line("time", "%s, took %s", s.Started.Local().Format(time.DateTime), age(took))
	line("agent", "%s, sandbox %s", strings.TrimSpace(s.Agent+" "+s.Model), s.Sandbox)
	for _, it := range v.Iterations {
		line(fmt.Sprintf("iteration %d", it.Number), "%s, %s, %s%s", it.Ending, plural(it.Commits, "commit"), age(it.Duration), failure(it.Failure))
	}
	for _, c := range v.Gate {
		state := "passed"
		if !c.Passed() {
			state = fmt.Sprintf("failed with exit status %d", c.ExitCode)
		}
		line("gate", "%s: %s in %s", c.Command, state, age(c.Duration))
	}
	if u := v.Usage; u.Input+u.Output > 0 {
		line("usage", "%d tokens in, %d from cache, %d out, %.4f USD", u.Input+u.CacheWrite, u.CacheRead, u.Output, u.CostUSD)
	}
	line("commits", "%d on %s, from %s%s", v.Commits, s.Branch, s.Base, s.soFar())
	if v.Published != "" {
		line("published", "%s", v.Published)
	}
	if v.Question != "" {
		line("question", "%s", v.Question)
	}
	for _, w := range v.Warnings {
		line("warning", "%s", w)
	}
	line("logs", "%s", s.Dir)
}

// soFar says of a run's commits that more may be there than ralph has seen.
func (s runState) soFar() string {
	if s.State == "running" {
		return "; those of an iteration are counted when it ends"
	}
	return ""
}

func failure(f *agents.Failure) string {
	if f == nil {
		return ""
	}
	return ", " + f.Error()
}

func shortSHA(s string) string { return s[:min(12, len(s))] }
