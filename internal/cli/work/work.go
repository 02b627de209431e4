// Package work has the commands `ralph work` and `ralph run`: the checks before runs begin, the plan and its forecast, and
// the result. Other commands that begin runs use its checks.
package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/internal/reach"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/parking"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree/git"
)

const workLong = `Empty the backlog: take the issues that carry the pick-up label, work each one with the agent in its own
worktree until the gate passes, publish the commits and report on the issue. This is one sweep: it works each issue once, and
ends when none is left. A later ` + "`ralph work`" + ` retries issues that failed, once their waiting time is over.

With KEYs only these issues are worked, even if they wait for a retry or were handed to a person, but not if they are in
review. Any number of sweeps may run at the same time, here and on other machines. Ctrl-C stops the agents and imports their
commits; a second Ctrl-C kills the agents. A flag marked "..." may be repeated.`

const workExample = `  ralph work --dry-run
  ralph work --parallel 8 --gate 'go test ./...'
  ralph work --sandbox none --skip-permissions fix-login
  ralph work --agent-command './my-agent --fast' --publish merge`

// NewCommand returns `ralph work`.
func NewCommand(a *compose.App) *cobra.Command {
	s := &sweep{App: a}
	cmd := &cobra.Command{
		Use: "work [KEY...]", Short: "Empty the backlog", Long: workLong, Example: workExample,
		Annotations: compose.Marks(compose.Sweeps),
		GroupID:     compose.GroupWork, ValidArgsFunction: a.CompleteKeys,
		RunE: a.InBacklog(func(ctx context.Context, p *compose.Parts, args []string) error {
			s.parts, s.keys = p, args
			return s.run(ctx)
		}),
	}
	cmd.Flags().BoolVarP(&s.dry, "dry-run", "n", false, "print what would be worked, and why the rest would not; change nothing")
	cmd.Flags().BoolVar(&s.plain, "plain", false, "print plain lines, also on a terminal")
	a.AddJSON(cmd)
	a.Bind(cmd, keys.ForWork)
	return cmd
}

// brokenText counts the issues that could not be read, or returns "".
func brokenText(problems []tracker.Problem) string {
	n := countIf(problems, func(p tracker.Problem) bool { return !p.Kept })
	if n == 0 {
		return ""
	}
	return screen.Plural(n, "broken issue") + " skipped"
}

// Sweepable finds errors on which every run would fail, before anything starts.
func Sweepable(ctx context.Context, p *compose.Parts, publish journal.Publish) error {
	if publish == journal.PublishMerge {
		if err := p.Repo.CheckNoOperation(ctx); err != nil {
			return err
		}
	}
	base, err := p.ForeignBase(ctx)
	if err != nil {
		return err
	}
	if err := PrefixFree(ctx, p); err != nil {
		return err
	}
	if publish == journal.PublishMerge {
		return compose.NeedsBranch(base, "--publish merge")
	}
	return nil
}

// PrefixFree refuses a branch whose name is a folder of ralph's branches: git cannot have both.
func PrefixFree(ctx context.Context, p *compose.Parts) error {
	var folders []string
	for at, c := range p.BranchPrefix {
		if c == '/' {
			folders = append(folders, git.Heads+p.BranchPrefix[:at])
		}
	}
	if len(folders) == 0 {
		return nil
	}
	refs, err := p.Repo.Git().Refs(ctx, folders...)
	for _, ref := range folders {
		if refs[ref] != "" {
			name := strings.TrimPrefix(ref, git.Heads)
			return exit.Usagef("the branch %s is in the way of ralph's branches %s…; "+
				"rename it with: git branch -m %s OTHER, or set branch-prefix", name, p.BranchPrefix, git.Quote(name))
		}
	}
	return err
}

// Enough refuses a number of workers for which there are too few open files or processes.
func Enough(parallel int) error {
	limit, err := proc.OpenFiles()
	if err != nil {
		return err
	}
	if err := enoughFiles(parallel, limit); err != nil {
		return err
	}
	if free, limited := cgroup.Free(); limited && free < parking.Processes(parallel) {
		return exit.Usagef("--parallel %d needs at least %d more processes and threads, "+
			"but the control group allows %d; allow more (pids.max; TasksMax= of "+
			"a systemd unit, --pids-limit of a container), or use a lower --parallel", parallel, parking.Processes(parallel), free)
	}
	if free, limited := proc.FreeTasks(); limited && free < parking.Processes(parallel) {
		return exit.Usagef("--parallel %d needs at least %d more processes and threads, but the limit of your user allows %d; "+
			"end some processes, allow more with: ulimit -u, or use a lower --parallel", parallel, parking.Processes(parallel), free)
	}
	return nil
}

func enoughFiles(parallel int, limit uint64) error {
	fit := parking.MaxIssues(limit)
	if parallel <= fit {
		return nil
	}
	fewer := ""
	if fit > 0 {
		fewer = fmt.Sprintf("use --parallel %d, or ", fit)
	}
	needed := parking.FilesNeeded(parallel) + 1 // Go leaves one of the hard limit unused
	return exit.Usagef("--parallel %d needs %d open files, but %d are allowed; %sallow more with: ulimit -Hn %[2]d", parallel, needed, limit, fewer)
}

// onlyKey returns the key of a single run, else the placeholder KEY.
func onlyKey(runs []journal.Record) string {
	if len(runs) == 1 {
		return runs[0].Key
	}
	return "KEY"
}

// verdict returns the error that decides the exit status of a sweep.
func verdict(ctx context.Context, s pool.Summary) error {
	unfinished := countIf(s.Runs, func(r journal.Record) bool { return r.Ended.IsZero() }) // the next sweep ends these
	untold := countIf(s.Runs, func(r journal.Record) bool { return r.Unreported != "" || r.Unlabelled != "" })
	failed := slices.DeleteFunc(slices.Clone(s.Runs), func(r journal.Record) bool {
		return r.Verdict.Outcome == journal.Succeeded || r.Verdict.Outcome == journal.Superseded
	})
	bad := len(failed)
	unavailable := bad == s.Count(journal.AgentUnavailable, journal.EnvironmentUnavailable, journal.Interrupted)
	switch {
	case s.Interrupted:
		return exit.ErrInterrupted
	case s.Unavailable != nil && unavailable && s.Count(journal.Succeeded) == 0:
		fix := hint.For(s.Unavailable)
		if e, setUp := errors.AsType[*workspace.BaselineError](s.Unavailable); setUp {
			fix = hint.Baseline(e, func(host string) bool { return reach.PrivateHost(ctx, host) })
		}
		if spent, ok := errors.AsType[*ledger.SpentError](s.Unavailable); ok {
			fix = fmt.Sprintf("the next sweep then continues; to continue now, raise budget-usd-%s or budget-tokens-%s", spent.Period, spent.Period)
		}
		if !s.ParkedUntil.IsZero() {
			fix = "the next sweep continues; the agent is expected to be available at " + s.ParkedUntil.Local().Format(time.DateTime)
		}
		return &exit.Error{Status: exit.Parked, Err: errors.New(unavailableText(s.Unavailable)), Hint: fix, Told: stillParked(s)}
	case unfinished > 0:
		return &exit.Error{
			Status: exit.Incomplete,
			Err:    fmt.Errorf("%d of %s not published or reported yet", unfinished, screen.Plural(len(s.Runs), "issue")),
			Hint:   "the next `ralph work` continues",
		}
	case bad > 0:
		return &exit.Error{Status: exit.Incomplete, Err: errors.New(badText(failed, len(s.Runs))),
			Hint: "`ralph show " + onlyKey(failed) + "` says why and what to type next"}
	case s.Unavailable != nil:
		return &exit.Error{Status: exit.Incomplete, Err: errors.New(unavailableText(s.Unavailable)), Hint: hint.For(s.Unavailable)}
	case len(s.Broken) > 0: // each was reported
		status := exit.Incomplete
		if len(s.Runs) == 0 {
			status = exit.Failed
		}
		return &exit.Error{Status: status, Err: fmt.Errorf("%s could not be worked", screen.Plural(len(s.Broken), "issue"))}
	case untold > 0:
		return &exit.Error{
			Status: exit.Incomplete,
			Err:    fmt.Errorf("the report or the labels of %s could not be written", screen.Plural(untold, "issue")),
			Hint:   "`ralph show KEY` says why",
		}
	case brokenText(s.Problems) != "":
		return exit.Incompletef("%s", brokenText(s.Problems))
	}
	return nil
}

// badText counts the runs that ended with nothing to merge. A run without a change did not fail.
func badText(failed []journal.Record, all int) string {
	unchanged := countIf(failed, func(r journal.Record) bool { return r.Verdict.Outcome == journal.NoChange })
	var parts []string
	if n := len(failed) - unchanged; n > 0 {
		parts = append(parts, partOf(n, all)+" did not succeed")
	}
	if unchanged > 0 {
		parts = append(parts, partOf(unchanged, all)+" ended without a change")
	}
	return strings.Join(parts, ", ")
}

func partOf(n, all int) string {
	if n == all {
		return screen.Plural(all, "issue")
	}
	return fmt.Sprintf("%d of %d issues", n, all)
}

// unavailableText says why the rest of the backlog cannot be worked.
func unavailableText(err error) string {
	var agent *run.UnavailableError
	if errors.As(err, &agent) && agent.Key != "" {
		return fmt.Sprintf("%s: %s; `ralph work KEY` works an issue at once", report.Unavailable(agent.Agents), report.Reason(agent.Reason))
	}
	return err.Error()
}

func countIf[T any](list []T, is func(T) bool) (n int) {
	for _, item := range list {
		if is(item) {
			n++
		}
	}
	return n
}
