package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/worktree"
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
	if a.json {
		return a.ui.json(states)
	}
	name := p.names(cmd.Context())
	for i, s := range states {
		if i > 0 {
			a.ui.printf("\n")
		}
		a.showRun(s, name(s.Key))
	}
	return a.showWork(cmd.Context(), p, states[len(states)-1])
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
	line("commits", "%d on %s, from %s", v.Commits, s.Branch, s.Base)
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

func failure(f *agents.Failure) string {
	if f == nil {
		return ""
	}
	return ", " + f.Error()
}

// showWork prints where the work is and what to do with it.
func (a *app) showWork(ctx context.Context, p *parts, s runState) error {
	base, err := p.base(ctx)
	if err != nil {
		return err
	}
	branches, err := p.repo.Branches(ctx, base)
	if err != nil {
		return err
	}
	a.ui.printf("\n%s\n", a.ui.paint(bold, "Now"))
	var at worktree.Branch
	for _, b := range branches {
		if b.Key == s.Key {
			at = b
		}
	}
	switch {
	case at.Tip == "":
		a.ui.printf("  no branch of ralph's is left\n")
	case at.Merged:
		a.ui.printf("  %s is contained in %s\n", cleanLine(at.Name), cleanLine(base.Name))
	default:
		a.ui.printf("  %s has %s that %s has not\n", cleanLine(at.Name), plural(at.Ahead, "commit"), cleanLine(base.Name))
	}
	if at.WIP != "" {
		a.ui.printf("  uncommitted changes are saved: git show %s\n", shortSHA(at.WIP))
	}
	if at.Tree != "" {
		a.ui.printf("  worktree: %s\n", cleanLine(at.Tree))
	}
	for _, next := range nextSteps(s, at, base) {
		a.ui.printf("  next: %s\n", cleanLine(next))
	}
	return nil
}

func nextSteps(s runState, b worktree.Branch, base worktree.Base) []string {
	var next []string
	if b.Tip != "" && !b.Merged {
		next = append(next, fmt.Sprintf("git diff %s...%s", base.Name, b.Name))
	}
	switch {
	case s.State == "running":
		return []string{"ralph logs -f " + s.Key, "ralph stop " + s.Key}
	case s.State == "unfinished":
		return append(next, "ralph work") // goes on from there
	case s.Verdict.Outcome == pool.Succeeded && b.Tip != "" && !b.Merged:
		return append(next, "git merge "+b.Name)
	case s.Verdict.Outcome == pool.Succeeded:
		return append(next, "ralph clean")
	}
	return append(next, "ralph logs "+s.Key, "ralph work "+s.Key)
}

func shortSHA(s string) string { return s[:min(12, len(s))] }
