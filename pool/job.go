package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Strategy says where a Job works.
type Strategy string

const (
	// StrategyHead works in the checkout itself. Only for sandboxes that work in place.
	StrategyHead Strategy = "head"
	// StrategyBranch works on a named branch in a worktree that stays for the next job on that branch.
	StrategyBranch Strategy = "branch"
	// StrategyMerge works on a scratch branch and merges it back into the branch that was checked out at the start.
	StrategyMerge Strategy = "merge-to-head"
)

// Job is one prompt for one agent, without a tracker: what `ralph run` does.
type Job struct {
	// Repo must have a state folder of its own, apart from a Pool's: the worktrees of jobs are not a sweep's to clean.
	Repo      *worktree.Repo
	Agent     agents.Agent
	Options   agents.Options
	Sandboxes sandboxes.Provider
	Name      string // shown to people; part of the scratch branch's name

	Strategy   Strategy // default StrategyHead for a sandbox in place, else StrategyMerge
	Branch     string   // StrategyBranch
	AllowDirty bool     // StrategyBranch: work on in a worktree with uncommitted changes
	Copy       []string // untracked files that go into the worktree; not with StrategyHead

	Prompt        loop.Prompt
	Setup, Gate   []loop.Command
	Signals       []string
	MaxIterations int // default 1
	NoProgress    int // default: never
	Timers        loop.Timers
	Budget        loop.Budget
	Output        *loop.Output
	Env           []string
	Network       Network
	Limits        sandboxes.Limits
	Mounts        []sandboxes.Mount

	// Kill, when closed, ends everything at once; ending the context of Run asks the agent to end.
	Kill    <-chan struct{}
	Observe func(loop.Event)
	// Recovered is told, before the job begins, what was taken back of each earlier one that had died with work.
	Recovered func(Recovered)
	Stream    func(name string) (io.WriteCloser, error)
}

// JobResult is what a job did.
type JobResult struct {
	loop.Result
	Branch  string            // where the commits are
	Target  string            // the branch that was checked out at the start
	Commits []worktree.Commit // the agent's, oldest first
	Merged  string            // StrategyMerge: the commit that the target was moved to
	Tree    string            // the worktree, if it is still there
	WIP     string            // commit that holds uncommitted changes; they are not on the branch
}

// Recovered is what a job that died had left in its worktree.
type Recovered struct {
	Run, Key string
	Branch   string // where its commits are
	New      int    // how many of them were not on it for sure
	WIP      string // commit that holds its uncommitted changes; they are not on the branch
	Tree     string // the worktree, which stays
}

// Check finds what is wrong with the job before anything starts.
func (j Job) Check() error {
	j = j.withDefaults()
	var errs []error
	if !slices.Contains([]Strategy{StrategyHead, StrategyMerge, StrategyBranch}, j.Strategy) {
		errs = append(errs, fmt.Errorf("branch strategy %q is not one of head, merge-to-head, branch", j.Strategy))
	}
	switch caps := j.Sandboxes.Capabilities(); {
	case j.Strategy == StrategyHead && caps.Files != sandboxes.InPlace:
		errs = append(errs, fmt.Errorf("branch strategy head works in your checkout and needs sandbox none; with sandbox %s use merge-to-head or branch", j.Sandboxes.Name()))
	case j.Strategy == StrategyBranch && j.Branch == "":
		errs = append(errs, errors.New("branch strategy branch needs the name of a branch: --branch NAME"))
	case j.Strategy != StrategyBranch && j.Branch != "":
		errs = append(errs, fmt.Errorf("a branch name goes with branch strategy branch, not %s: --branch-strategy branch", j.Strategy))
	case j.Strategy == StrategyHead && len(j.Copy) > 0:
		errs = append(errs, errors.New("copy needs a worktree: --branch-strategy merge-to-head or branch"))
	}
	return errors.Join(append(errs, j.Agent.Check(j.Options), j.config(place{}).Validate())...)
}

// Run runs the job to its end. An error means that the job could not be done; what the agent committed is kept and
// the error says where. Ending ctx asks the agent to end and takes its commits back.
func (j Job) Run(ctx context.Context) (JobResult, error) {
	j = j.withDefaults()
	if err := j.Check(); err != nil {
		return JobResult{}, err
	}
	hard, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		select {
		case <-j.Kill:
			cancel(errKilled)
		case <-hard.Done():
		}
	}()
	defer func() { cancel(nil); <-killed }()

	at, err := j.open(hard)
	if err != nil {
		return JobResult{}, err
	}
	defer at.free()
	res, err := j.runAt(ctx, hard, at)
	if err != nil {
		return res, errors.Join(err, j.abandon(context.WithoutCancel(hard), at))
	}
	return res, j.finish(hard, at, &res)
}

func (j Job) withDefaults() Job {
	if j.Strategy == "" {
		j.Strategy = StrategyMerge
		if j.Sandboxes.Capabilities().Files == sandboxes.InPlace {
			j.Strategy = StrategyHead
		}
	}
	if j.MaxIterations == 0 {
		j.MaxIterations = 1
	}
	if j.NoProgress == 0 {
		j.NoProgress = -1
	}
	return j
}

func (j Job) runAt(soft, hard context.Context, at place) (res JobResult, err error) {
	spec := sandboxes.Spec{
		Run: at.run, Worktree: at.dir, Env: append([]string{"RALPH_RUN=" + at.run, "RALPH_BRANCH=" + at.branch}, j.Env...),
	}
	isolated := j.Sandboxes.Capabilities().Isolated()
	if isolated {
		spec.Env, spec.Mounts, spec.Limits = agents.Conceal(spec.Env), j.Mounts, j.Limits
	}
	if err := separate(hard, j.Sandboxes, at.tree, &spec); err != nil {
		return res, err
	}
	way, err := leaving{
		run: at.run, provider: j.Sandboxes, network: j.Network, agent: j.Agent, options: j.Options, secrets: NewSecrets(), log: zerolog.Nop(),
	}.open()
	if err != nil {
		return res, err
	}
	defer func() {
		res.Warnings = append(res.Warnings, way.refused()...)
		err = errors.Join(err, way.close())
	}()
	spec.Egress, j.Options = way.socket, way.options
	box, err := j.Sandboxes.Open(hard, spec)
	if err != nil {
		return res, fmt.Errorf("sandbox %s: %w", j.Sandboxes.Name(), err)
	}
	c := j.config(at)
	c.Sandbox, c.Interrupt = box, soft.Done()
	res = JobResult{Result: loop.Run(hard, c), Branch: at.branch, Target: at.base.Name}
	if err := box.Close(context.WithoutCancel(hard)); err != nil {
		res.Warnings = append(res.Warnings, "sandbox: "+err.Error())
	}
	res.Warnings = append(res.Warnings, noticesOf(box)...)
	res.Warnings = append(append(res.Warnings, leftInside(box)...), refusedBy(box)...)
	return res, nil
}

func (j Job) config(at place) loop.Config {
	prompt := j.Prompt
	prompt.Builtin = map[string]string{"branch": at.base.Name, "source_branch": at.branch, "base": at.base.Name}
	return loop.Config{
		Agent: j.Agent, Options: j.Options, Prompt: prompt, HandBack: at.handBack, Setup: j.Setup, Gate: j.Gate,
		Signals: j.Signals, MaxIterations: j.MaxIterations, NoProgress: j.NoProgress, Timers: j.Timers, Budget: j.Budget,
		Output: j.Output, Observe: j.Observe, Stream: j.Stream, WithoutCommits: true,
	}
}

// scratch is the key of a job on a scratch branch.
func (j Job) scratch(run string) string {
	if j.Name == "" {
		return "run-" + run
	}
	return "run-" + tracker.Key(strings.ToLower(j.Name)) + "-" + run
}

// jobLife is how long the claim on a named branch lasts without its ralph; a dead one's is taken over at once.
const jobLife = 24 * time.Hour
