package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/worktree"
)

const workLong = `Empty the backlog: take the issues that carry the pick-up label, work each one with the agent in its own worktree until
the gate passes, publish the commits and report on the issue. It ends when nothing that can be worked is left.

With KEYs only these issues are worked, and waiting times and a hand-over to a person do not count for them. Any number
of sweeps may run at the same time, here and on other machines. Ctrl-C lets the agents end and takes their commits
back; a second one kills them. A flag with "..." behind it may be given several times.`

const workExample = `  ralph work --dry-run
  ralph work --label no-human --parallel 4 --gate 'go test ./...'
  ralph work --sandbox none --skip-permissions fix-login
  ralph work --agent-command './my-agent --fast' --publish merge`

// workKeys are the settings of `ralph work`.
func workKeys() []string {
	return []string{
		"labels", "exclude-labels", "parallel", "limit", "assignee", "milestone", "authors", "trusted-bots", "priority-labels",
		"tracker", "local.dir", "project", "forge-url", "token-env", "token-file", "token-command", "github-app-id",
		"github-app-installation", "github-app-key", "ca-file", "agent", "model", "effort",
		"permission-mode", "skip-permissions", "agent-command", "agent-args", "agent-env", "agent-upstream", "prompt-file", "sandbox", "allow", "mounts",
		"sandbox-show", "image", "memory-mb", "cpus", "pids", "scratch-mb", "container-user", "container-runtime", "container-files", "container-unbounded", "container-args",
		"before", "copy", "setup", "gate", "max-iterations", "no-progress", "completion-signal", "base", "branch-prefix",
		"publish", "protected-paths", "request-template", "request-target", "request-labels", "reviewers", "request-assignees",
		"max-rounds", "remote", "idle-timeout", "completion-timeout", "completion-cap", "iteration-timeout", "run-timeout",
		"gate-timeout", "setup-timeout", "stop-grace", "claim-life", "max-attempts", "retry-backoff", "retry-backoff-max",
		"budget-tokens", "budget-usd", "review-label", "needs-human-label", "needs-info-label", "claimed-label", "failed-label", "state-dir", "min-free-mb", "keep-runs",
		"log-level", "log-format",
	}
}

func newWorkCommand(a *app) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use: "work [KEY...]", Short: "Empty the backlog", Long: workLong + "\n" + exitHelp, Example: workExample,
		GroupID: groupWork, ValidArgsFunction: a.completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error { return runWork(cmd, a, args, dry) },
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would be worked, and why the rest would not; change nothing")
	a.addJSON(cmd)
	a.bind(cmd, workKeys()...)
	return cmd
}

func runWork(cmd *cobra.Command, a *app, args []string, dry bool) (err error) {
	p, err := a.open(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if dry && p.Sandbox == "auto" {
		p.assumeNone() // nothing is run
	}
	c, err := a.poolConfig(cmd.Context(), p)
	if err != nil {
		return err
	}
	if both := p.passing(); both != "" {
		a.ui.note("%s; %s", cleanLine(both), p.passingMend())
	}
	// What every run would stumble over is said once, before anything starts.
	base, err := p.base(cmd.Context())
	if err != nil {
		return err
	}
	if c.Publish == pool.PublishMerge && !strings.HasPrefix(base.Ref, "refs/heads/") {
		return usagef("publish merge needs a local branch as base, and %s is none; give --base BRANCH", base.Name)
	}
	view := &workView{ui: a.ui, started: time.Now(), name: p.names(cmd.Context())}
	c.Observe = a.watched(view.event)
	workers, err := pool.New(c)
	if err != nil {
		return &exitError{status: exitUsage, err: err}
	}
	for i, key := range args {
		args[i] = p.key(cmd.Context(), key)
	}
	if dry {
		return a.plan(cmd.Context(), workers, view, args)
	}
	if err := c.Sandboxes.Check(cmd.Context()); err != nil {
		return untried(cmd.Context(), c.Sandboxes.Name(), err)
	}
	stop := context.AfterFunc(a.hard, workers.Kill)
	defer stop()
	defer a.sayStopping(cmd.Context(), c.StopGrace)()
	summary, err := workers.Sweep(cmd.Context(), args...)
	if err != nil && len(summary.Runs) == 0 {
		return asUsage(err)
	}
	if serr := a.summary(summary, view); serr != nil {
		return serr
	}
	if err != nil {
		return asUsage(err)
	}
	return verdict(summary)
}

// watched lets a test see the events too.
func (a *app) watched(fn func(pool.Event)) func(pool.Event) {
	if a.host.Observe == nil {
		return fn
	}
	return func(e pool.Event) {
		fn(e)
		a.host.Observe(e)
	}
}

// asUsage marks the errors that are the command line's fault, and those of a tracker or remote that cannot be used now.
func asUsage(err error) error {
	var unknown *pool.UnknownKeyError
	switch {
	case errors.As(err, &unknown):
		return &exitError{status: exitUsage, err: err}
	case isAway(err):
		return &exitError{status: exitParked, err: err}
	}
	return err
}

// verdict is the exit status of a sweep.
func verdict(s pool.Summary) error {
	bad := len(s.Runs) - s.Count(pool.Succeeded, pool.Superseded)
	switch {
	case s.Interrupted:
		return errInterrupted
	case s.Unavailable != nil && bad == s.Count(pool.AgentUnavailable) && s.Count(pool.Succeeded) == 0:
		hint := ""
		if errors.Is(s.Unavailable, worktree.ErrRemote) {
			hint = "to work on this machine only, without the remote: --remote none"
		}
		if !s.ParkedUntil.IsZero() {
			hint = "the next sweep goes on; the agent is expected back at " + s.ParkedUntil.Local().Format(time.DateTime)
		}
		return &exitError{status: exitParked, err: s.Unavailable, hint: hint}
	case unfinished(s) > 0:
		return &exitError{status: exitIncomplete, err: fmt.Errorf("%d of %s not published or reported yet", unfinished(s), plural(len(s.Runs), "issue")),
			hint: "the next `ralph work` goes on from there, without the agent"}
	case bad > 0:
		return &exitError{status: exitIncomplete, err: fmt.Errorf("%d of %d issues did not succeed", bad, len(s.Runs)),
			hint: "`ralph show KEY` says why and what to type next"}
	case s.Unavailable != nil:
		return &exitError{status: exitIncomplete, err: s.Unavailable}
	case len(s.Broken) > 0 && len(s.Runs) == 0:
		return fmt.Errorf("%s: %s", s.Broken[0].Issue.Key, s.Broken[0].Reason)
	case len(s.Broken) > 0:
		return &exitError{status: exitIncomplete, err: fmt.Errorf("%s could not be worked", plural(len(s.Broken), "issue"))}
	case untold(s) > 0:
		return &exitError{status: exitIncomplete, err: fmt.Errorf("the report or the labels of %s could not be written", plural(untold(s), "issue")),
			hint: "`ralph show KEY` says why"}
	case len(s.Problems) > 0:
		return &exitError{status: exitIncomplete, err: fmt.Errorf("%s left out", plural(len(s.Problems), "broken issue"))}
	}
	return nil
}

// untold counts the runs whose issues do not show what became of them.
func untold(s pool.Summary) int {
	n := 0
	for _, r := range s.Runs {
		if r.Verdict.Unreported != "" || r.Verdict.Unlabelled != "" {
			n++
		}
	}
	return n
}

// unfinished counts the runs whose end is left to the next sweep.
func unfinished(s pool.Summary) int {
	n := 0
	for _, r := range s.Runs {
		if r.Ended.IsZero() {
			n++
		}
	}
	return n
}

// plan prints what a sweep would do.
func (a *app) plan(ctx context.Context, workers *pool.Pool, view *workView, keys []string) error {
	plan, err := workers.Plan(ctx, keys...)
	if err != nil {
		return asUsage(err)
	}
	if a.json {
		return a.ui.json(planJSON(plan))
	}
	if len(plan.Work) == 0 {
		a.ui.printf("Nothing to work.\n")
	} else {
		rows := [][]string{{"#", "ISSUE", "TITLE"}}
		for i, issue := range plan.Work {
			rows = append(rows, []string{fmt.Sprint(i + 1), view.name(issue.Key), issue.Title})
		}
		a.ui.printf("Would work, in this order:\n")
		a.ui.table(rows)
	}
	if len(plan.Skipped) > 0 {
		rows := [][]string{{"ISSUE", "WHY NOT"}}
		for _, s := range plan.Skipped {
			rows = append(rows, []string{view.name(s.Issue.Key), s.Reason})
		}
		a.ui.printf("\nWould leave out:\n")
		a.ui.table(rows)
	}
	for _, pr := range plan.Problems {
		a.ui.warn(pr.Error())
	}
	return nil
}
