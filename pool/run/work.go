package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/checks"
	"github.com/ralph-pool/ralph/pool/internal/feedback"
	"github.com/ralph-pool/ralph/pool/internal/judge"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/parking"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
)

// work runs the agent's loop, or the command.
func (x *execution) work(ctx context.Context, s journal.State) (journal.State, error) {
	switch {
	case s.Facts.Open != nil || s.Facts.StoppedStage != "" || len(s.Facts.Policy) > 0:
		return s, nil
	case x.run.Kind == journal.KindCommand:
		return x.exec(ctx, s), nil
	case x.useUnpublished(ctx, &s):
		return s, nil
	}
	res := x.loop(ctx, &s)
	s = x.collect(s, res)
	if slices.Contains([]loop.End{loop.EndMaxIterations, loop.EndNoProgress, loop.EndTimeout}, res.End) {
		// Without an answer of git, the limit is the reason.
		s.Facts.Conflict, _ = x.unrelated(ctx, s.Tip)
	}
	return x.checkInterrupted(ctx, s, res), nil
}

// unrelated says that commits of the run's tree have no history in common with the base, if they have none.
func (x *execution) unrelated(ctx context.Context, tip string) (string, error) {
	if x.space.Tree == nil || tip == "" {
		return "", nil
	}
	related, err := x.c.Repo.Spans().Related(ctx, x.base.Commit, tip)
	if err != nil || related {
		return "", err
	}
	return "the commits have no history in common with " + x.base.Name, nil
}

// collect puts the result of the loop into the state.
func (x *execution) collect(s journal.State, res loop.Result) journal.State {
	x.space.Gateway.RestoreAddresses(res.Failure)
	for _, i := range res.Iterations {
		x.space.Gateway.RestoreAddresses(i.Failure)
	}
	f, earlier := &s.Facts, x.spend.Earlier()
	f.End, f.Iterations, f.Failure, f.Commits, f.Tip = res.End, res.Iterations, res.Failure, res.Work.Commits, res.Work.Tip
	f.Gate, f.GateRan, f.Message, f.Question, f.NoChange = res.Gate, res.GateRan, res.Message, res.Question, res.Reason
	f.Usage, f.UsedNothing = res.Usage, journal.UsedNothing(res.Iterations)
	f.EndDetail = report.Loop(x.run.Agent, res, report.Budgets{Issue: x.c.Budget, Run: x.c.PerRun, Earlier: earlier})
	f.Capped = res.End == loop.EndBudget && !res.AgentBudgetExhausted && !x.c.PerRun.Exhausted(res.Usage) && !x.c.Budget.Exhausted(res.Usage.Add(earlier))
	if res.End == loop.EndUnavailable {
		f.AvailableAt = x.r.lot.Back(x.c.Chain(x.run.Attempt).Choices(), time.Now())
	}
	s.Tip, s.Commits = res.Work.Tip, res.Work.Commits
	for _, w := range res.Warnings {
		s.Warn(sandboxes.Notice{Text: w})
	}
	x.result.Output = res.Output
	return s
}

// checkInterrupted distinguishes how the agent itself ended from a cut by the machine or a stop.
func (x *execution) checkInterrupted(ctx context.Context, s journal.State, res loop.Result) journal.State {
	f := &s.Facts
	_, full := errors.AsType[*disk.UsageError](context.Cause(ctx))
	full = full || x.stop.Is(journal.StopDisk)
	f.Starved = !full && (errors.Is(res.Err, sandboxes.ErrUnavailable) || res.End == loop.EndImport && x.space.Starved(res.Err))
	lost := f.Starved && res.End == loop.EndSandbox // its checks may have been cut short, as by an interruption
	if res.End != loop.EndDone && res.End != loop.EndInterrupted && !lost {
		f.SignalTip = ""
	}
	ended := slices.Contains([]loop.End{loop.EndDone, loop.EndNoChange, loop.EndNeedsInfo}, res.End)
	// A stop leaves an import little time.
	interrupted := res.End == loop.EndInterrupted || res.End == loop.EndImport && x.stop.Stopped(ctx)
	if full && !ended && !interrupted && f.EndDetail != "" { // such as an import without disk space
		s.Warn(sandboxes.Notice{Text: f.EndDetail})
	}
	if full && !ended || interrupted {
		s = x.cut(ctx, s, journal.StageWork)
	}
	return s
}

// useUnpublished uses the commits of an earlier run that only have to be published: no agent is needed. They are verified again,
// unless a person merges commits that have passed.
func (x *execution) useUnpublished(ctx context.Context, s *journal.State) bool {
	old := x.task.Unpublished
	if old == nil || x.space.Tree == nil || x.space.Tree.Start() != old.Tip && !x.run.Settings.Attended {
		return false
	}
	if old.Commits == 0 && !x.run.Settings.Attended { // from another machine
		before, err := x.earlierWork(ctx)
		if err != nil || before.Tip != old.Tip {
			return false
		}
		old.Commits, old.Facts.Commits = before.Commits, before.Commits
	}
	f, was := &s.Facts, old.Facts
	f.End, f.Message, f.Commits, f.Tip, f.Gate, f.GateRan = was.End, was.Message, was.Commits, was.Tip, was.Gate, was.GateRan
	s.Tip, s.Commits = old.Tip, old.Commits
	if x.space.Tree.Start() == old.Tip && x.gateHasPassed(ctx) {
		s.Verified, f.Verify, f.Watch, f.Retest, f.Review = old.Verified, was.Verify, was.Watch, was.Retest, was.Review
	}
	if !x.run.Settings.Attended {
		x.events.Warn("no agent is needed: the commits of run " + old.ID + " are only to be checked and published")
	}
	return true
}

// loop runs the agent's loop.
func (x *execution) loop(ctx context.Context, s *journal.State) loop.Result {
	before, err := x.earlierWork(ctx)
	if err != nil {
		return loop.Result{End: loop.EndImport, Err: err}
	}
	if x.c.Budget.Exhausted(x.spend.Earlier()) { // such as after a crash
		return loop.Result{End: loop.EndBudget, Work: before}
	}
	prompt := x.c.Prompt
	prompt.Builtin, x.invisible = x.builtins()
	turns, err := x.turns(ctx, s)
	if err != nil {
		return loop.Result{End: loop.EndImport, Err: err}
	}
	agent, timers, setup := turns.First(time.Now()), x.c.Timers, x.c.Setup
	if x.space.SetUp() {
		setup = nil
	}
	timers.Interrupt = x.c.StopGrace
	x.spend.Book(x.space.Meter, s.Facts.Usage)
	x.space.Meter.Tell(x.events.Notice)
	x.addSecrets(ctx)
	defer x.addLogins() // an agent on the host may renew its login
	return loop.Run(ctx, loop.Config{
		Agent: agent.Agent, Options: agent.Options, Next: turns.Next, Sandbox: x.space, Prompt: prompt, EarlierWork: before,
		Import:    func(ctx context.Context) (loop.Work, error) { return x.importWork(ctx, s) },
		Accept:    func(ctx context.Context) string { return x.accept(ctx, s) },
		Verify:    func(ctx context.Context) string { return x.verifyWork(ctx, s) },
		Unchanged: checks.NewUnchanged(s.Facts.Baseline, x.space.Sandbox.Workdir()).After, Feedback: x.task.Feedback,
		Setup: setup, Gate: x.c.Gate, Signals: x.c.Signals, MaxIterations: x.c.MaxIterations, NoProgress: x.c.NoProgress,
		Timers: timers, Budget: x.spend.Remaining(), Iteration: x.c.Iteration, Estimate: x.c.EstimateOf, Price: x.c.Priced,
		Meter: x.space.Meter, Watched: x.c.Watched,
		Output: x.task.Output, WithoutCommits: x.run.Kind != journal.KindIssue,
		Resume: x.c.Resume, Shares: x.c.Shares, Interrupt: x.stop.Asked.Done(), Stream: x.events.Stream,
		Observe: func(e loop.Event) {
			switch e.Kind {
			case loop.EventIteration:
				s.Facts.Said = false
				x.storeDoneTip(ctx, s, "")
				x.markInUse(ctx)
			case loop.EventSaid: // a crash could lose it during the import
				if s.Facts.Said = x.run.Settings.Review.Agent == ""; s.Facts.Said { // a review's findings need the agent
					_ = x.save(ctx, *s) // on failure the next stage saves again
				}
			case loop.EventSpent, loop.EventEnded: // stored before a crash can lose it
				x.storeUsage(ctx, s, e)
			}
			x.events.Observe(e, journal.PlaceWorktree)
		},
	})
}

// turns returns the order of agents in this run.
func (x *execution) turns(ctx context.Context, s *journal.State) (*parking.Turns, error) {
	for _, err := range x.space.Gateway.Missing {
		*s = x.warn(*s, err)
	}
	chain := x.space.Gateway.Agents.Select(x.c.Chain(x.run.Attempt).Choices())
	if !x.r.spaces.Private() { // the agent's git is the user's own
		who, err := publish.Author(ctx, x.c.Identity, x.c.Tracker)
		if err != nil {
			return nil, err
		}
		chain = chain.WithEnv(who.Env())
	}
	return x.r.lot.Turns(chain), nil
}

// runAfterCommands runs the commands of `after`. At a shutdown they have the same grace period as an agent.
func (x *execution) runAfterCommands(ctx context.Context, s journal.State) journal.State {
	ctx, cancel := x.stop.ForCommands(ctx)
	defer cancel()
	a := workspace.After{Lines: x.c.After, Stream: x.events.Stream, Observe: func(e loop.Event) { x.events.Observe(e, journal.PlaceWorktree) }}
	for _, err := range a.Run(ctx, x.space) {
		s = x.warn(s, err)
	}
	return s
}

// judgeWork runs the retest and the review while the agent can still fix their findings.
func (x *execution) judgeWork(ctx context.Context, s *journal.State) (advice string) {
	for _, look := range []func(context.Context, *journal.State) (advice string, err error){x.retest, x.review} {
		advice, err := look(ctx, s)
		if err != nil && !x.stop.Stopped(ctx) {
			x.log.Warn("work not judged yet", "error", err)
		}
		if err != nil || advice != "" || s.Facts.Retest.Refused() { // a retest that could not run ends the run: no review helps
			return advice
		}
	}
	return ""
}

// review lets a second agent review the commits, if the configuration asks for that. advice is feedback for the first agent.
func (x *execution) review(ctx context.Context, s *journal.State) (advice string, err error) {
	x.spend.Book(x.space.Meter, s.Facts.Usage)
	x.space.Meter.Tell(x.events.Notice)
	counted := x.space.Meter.Used()
	defer func() { x.spend.Includes(x.space.Meter.Used().Minus(counted)) }()
	return x.r.judge.Review(ctx, judge.Work{
		Run: x.run, Issue: x.task.Issue, Base: x.base, Env: x.environment(), Budget: x.spend.Remaining(), Estimate: x.c.EstimateOf, Price: x.c.Priced,
		Watched: x.c.Watched, Asked: x.stop.Asked, Stream: x.events.Stream,
		Refused: x.events.Refused, Emit: x.events.Emit, Spent: func(e loop.Event) { x.storeUsage(ctx, s, e) }, Save: func() { _ = x.save(ctx, *s) },
	}, s)
}

// markInUse marks the tree as one that may have unsaved work, before an agent starts after an import.
func (x *execution) markInUse(ctx context.Context) {
	if x.space.Tree == nil || x.space.Tree.Unsaved() {
		return
	}
	if _, err := x.space.Tree.Sandbox(ctx); err != nil {
		x.log.Warn("worktree not marked as in use", "error", err)
	}
}

// earlierWork returns the work in the tree before the agent starts. Only host commands and copied files can have changed the
// worktree.
func (x *execution) earlierWork(ctx context.Context) (loop.Work, error) {
	if x.space.Tree == nil || len(x.c.Before) > 0 || len(x.c.Copy) > 0 {
		err := x.space.Import(ctx)
		return x.space.Work(), err
	}
	got, err := x.space.Tree.Earlier(ctx)
	x.space.Last = got
	return loop.Work{Tip: got.Tip, Commits: len(got.Commits)}, err
}

// importWork imports the commits for the loop, and stores their number.
func (x *execution) importWork(ctx context.Context, s *journal.State) (loop.Work, error) {
	x.r.spaces.Disk.Check(ctx) // an agent that has filled the disk may have ended before the guard's next look
	if err := x.space.Import(ctx); err != nil {
		return loop.Work{}, err
	}
	work := x.space.Work()
	s.Facts.PlaceSignal(work)
	if work.Commits > 0 && work.Tip != s.Tip { // includes those of earlier runs
		s.Tip, s.Commits = work.Tip, work.Commits
		_ = x.save(ctx, *s) // on failure the next stage saves again
	}
	if !x.space.NeedsSetup() || len(x.c.Setup) == 0 {
		return work, nil
	}
	config := loop.Config{Sandbox: x.space.Sandbox, Timers: x.c.Timers, Interrupt: x.stop.Asked.Done()}
	checks, err := loop.RunCommands(ctx, config, loop.EventSetup, x.c.Setup)
	switch {
	case x.stop.Stopped(ctx):
		return work, nil
	case err == nil && !loop.AllPassed(checks):
		err = errors.New("a command did not pass")
	}
	if err != nil {
		err = fmt.Errorf("set up the sandbox that replaces one that broke: %w", err)
	}
	return work, err
}

// storeDoneTip stores the tip at which the agent says that it is done. If its checks are cut short, the next run needs no agent
// for them.
func (x *execution) storeDoneTip(ctx context.Context, s *journal.State, tip string) {
	if s.Facts.SignalTip != tip {
		s.Facts.SignalTip = tip
		_ = x.save(ctx, *s) // on failure the next stage saves again
	}
}

// accept refuses incomplete commits, commits that cannot be merged and, once, commit messages that would act on a forge. If the
// agent does not change those messages, the end of the run rewrites them.
func (x *execution) accept(ctx context.Context, s *journal.State) (advice string) {
	reword := !x.askedToReword && x.run.Kind == journal.KindIssue
	x.askedToReword = x.askedToReword || reword && len(x.space.Last.ForgeCommands) > 0
	if advice = feedback.Import(x.space.Last, reword); advice == "" {
		if unrelated, _ := x.unrelated(ctx, s.Tip); unrelated != "" { // an error is left to the stage Verify
			advice = feedback.Unrelated(x.base.Name)
		}
	}
	if advice != "" {
		x.storeDoneTip(ctx, s, "")
	} else if x.run.Settings.Review.Agent == "" { // a review's findings need the agent
		x.storeDoneTip(ctx, s, x.space.Work().Tip)
	}
	return advice
}

// exec runs the command of a run without an agent.
func (x *execution) exec(ctx context.Context, s journal.State) journal.State {
	c := x.task.Command
	exit, err := x.space.Sandbox.Exec(ctx, sandboxes.Command{
		Argv: c.Argv, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, Interrupt: x.stop.Asked.Done(), Grace: c.Grace,
	})
	_, missing := errors.AsType[*sandboxes.StartError](err)
	switch {
	case err != nil && x.stop.Stopped(ctx):
		s = x.cut(ctx, s, journal.StageWork)
	case missing: // as in a shell
		status := 127
		s.Facts.Exit, s.Facts.EndDetail = &status, err.Error()
	case err != nil:
		s.Facts.EndDetail = err.Error()
	default:
		s.Facts.Exit = &exit.Code
	}
	return s
}

// addSecrets adds the present secrets of the agents' logins, and of files that are copied.
func (x *execution) addSecrets(ctx context.Context) {
	x.r.policy.AddCopied(ctx, cmp.Or(x.base.Commit, x.task.Base.Commit))
	x.addLogins()
}

// addLogins adds the present secrets of the agents' logins, which change when a login is renewed.
func (x *execution) addLogins() {
	all := agents.Builtin()
	for _, l := range x.c.Agents() {
		all = append(all, l.Agent)
	}
	x.c.Secrets.AddShortLived(agents.Secrets(x.c.Network.User, all...)...)
}

// addLaterUsage adds the usage after the stage Work, for example of a gate after a rebase.
func (x *execution) addLaterUsage(stage journal.Stage, u agents.Usage) agents.Usage {
	if x.space == nil {
		return u
	}
	since := x.spend.Count(x.space.Meter)
	if !journal.StageWork.Before(stage) { // counted by the loop
		return u
	}
	return u.Add(since)
}

// storeUsage stores the run's usage before a crash can lose it. After an iteration, and before one whose usage is estimated, it
// also records the usage on the claim, for other machines.
func (x *execution) storeUsage(ctx context.Context, s *journal.State, e loop.Event) {
	ahead := e.Used.Estimated > s.Facts.Usage.Estimated
	s.Facts.Usage = e.Used
	if e.Result != nil {
		s.Facts.Iterations = append(s.Facts.Iterations, *e.Result)
	}
	_ = x.save(ctx, *s) // on failure the next stage saves again
	if e.Kind == loop.EventEnded || ahead {
		x.spend.Record(ctx, e.Used)
	}
}

// builtins returns the prompt's built-in values, and the number of invisible characters removed from the issue's text.
func (x *execution) builtins() (map[string]string, int) {
	if x.run.Kind != journal.KindIssue {
		return map[string]string{"branch": x.base.Name, "source_branch": x.run.Branch, "base": x.base.Name}, 0
	}
	return feedback.PromptFacts(x.task.Issue, x.run)
}

// Prompt returns the exact prompt of the run's first iteration. It shows commands in the template but does not run them.
func (r *Runner) Prompt(ctx context.Context, issue tracker.Issue, of journal.Run) (string, error) {
	prompt := r.c.Prompt
	prompt.Builtin, _ = feedback.PromptFacts(issue, of)
	c := loop.Config{Gate: r.c.Gate, Signals: r.c.Signals, MaxIterations: r.c.MaxIterations}
	return prompt.Render(ctx, c.PromptVars(1, ""), nil)
}
