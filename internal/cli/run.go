package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
)

const runLong = `Run one prompt, without a backlog: start the agent, again and again up to --max-iterations, until its last message
holds the completion signal and the gate passes. Commits are yours on the branch that the strategy names:

  head           in your checkout, as it is; with sandbox none, where it is the default
  merge-to-head  on a scratch branch in a worktree, merged back into the branch you are on; the default otherwise
  branch         on the branch --branch, in a worktree that stays for the next run

An inline prompt is sent as it is. In a prompt file, of which - is standard input, {{KEY}} is replaced by --prompt-arg
KEY=VALUE and by the built-ins branch, source_branch, base, iteration, max_iterations, feedback, gate and signal, and
!` + "`command`" + ` by what the command prints.`

const runExample = `  ralph run --sandbox none --prompt 'Fix the flaky test in pool/'
  ralph run --prompt-file refactor.md --prompt-arg area=auth --max-iterations 5 --branch-strategy merge-to-head
  ralph run --agent codex --model gpt-5.5 --effort high --prompt 'Say hi'
  ralph run --prompt 'List the packages in <out>JSON</out>' --output-tag out --output-schema schema.json`

// runFlags are the flags of `ralph run` that are no settings.
type runFlags struct {
	prompt     string
	promptArgs []string
	name       string
	logFile    string
	strategy   string
	branch     string
	outputTag  string
	schema     string
	dirty      bool
	iterations int
}

func newRunCommand(a *app) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "run", Short: "Run one prompt, without a backlog", Long: runLong + "\n" + exitHelp, Example: runExample,
		GroupID: groupWork, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runRun(cmd, a, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.prompt, "prompt", "", "the prompt, sent as it is")
	flags.StringArrayVar(&f.promptArgs, "prompt-arg", nil, "`KEY=VALUE` for the prompt file")
	flags.StringVar(&a.repo, "cwd", "", "same as --repo")
	flags.StringVar(&f.name, "name", "", "name of the run, shown on every line")
	flags.StringVar(&f.logFile, "log-file", "", "write progress and what the agent says to this `file`, not to the terminal")
	flags.StringVar(&f.strategy, "branch-strategy", "", "where commits go: head, merge-to-head, branch (default: head with sandbox none, else merge-to-head)")
	flags.StringVar(&f.branch, "branch", "", "the branch of --branch-strategy branch")
	flags.BoolVar(&f.dirty, "allow-dirty", false, "work on in a branch's worktree that has uncommitted changes")
	flags.StringVar(&f.outputTag, "output-tag", "", "print what the agent says between <TAG> and </TAG>, for the last `TAG` pair")
	flags.StringVar(&f.schema, "output-schema", "", "JSON Schema `file` that the output must satisfy")
	flags.IntVar(&f.iterations, "max-iterations", 1, "agent processes at most")
	_ = cmd.RegisterFlagCompletionFunc("branch-strategy", cobra.FixedCompletions(strategies(), cobra.ShellCompDirectiveNoFileComp))
	a.addJSON(cmd)
	a.bind(cmd, "agent", "model", "effort", "permission-mode", "skip-permissions", "agent-command", "agent-args",
		"agent-env", "agent-upstream", "prompt-file", "sandbox", "allow", "mounts", "sandbox-show", "image", "memory-mb", "cpus", "pids",
		"scratch-mb", "container-user", "container-runtime", "container-files", "container-unbounded", "container-args", "copy", "setup", "gate", "completion-signal", "idle-timeout",
		"completion-timeout", "completion-cap", "iteration-timeout", "run-timeout", "gate-timeout", "setup-timeout",
		"stop-grace", "budget-tokens", "budget-usd", "state-dir", "log-level", "log-format")
	return cmd
}

func strategies() []string {
	return []string{string(pool.StrategyHead), string(pool.StrategyMerge), string(pool.StrategyBranch)}
}

func runRun(cmd *cobra.Command, a *app, f runFlags) error {
	prompt, err := f.promptOf(cmd)
	if err != nil {
		return err
	}
	output, err := f.output(a)
	if err != nil {
		return err
	}
	p, err := a.openRepo(cmd, "jobs")
	if err != nil {
		return err
	}
	provider, err := a.sandbox(cmd.Context(), p)
	if err != nil {
		return err
	}
	agent, options, env, err := a.agent(p.Config, provider)
	if err != nil {
		return err
	}
	network, err := a.network(p.Config)
	if err != nil {
		return err
	}
	mounts, err := a.mounts(p)
	if err != nil {
		return err
	}
	log, err := a.jobLog(p, f)
	if err != nil {
		return err
	}
	defer log.close()
	if prompt.Template != "" || prompt.Inline == "" {
		if prompt, err = a.template(cmd.Context(), p, prompt); err != nil {
			return err
		}
	}
	job := pool.Job{
		Repo: p.repo, Agent: agent, Options: options, Sandboxes: provider, Name: f.name,
		Strategy: pool.Strategy(f.strategy), Branch: f.branch, AllowDirty: f.dirty, Copy: given(cmd, "copy", p.Copy),
		Prompt: prompt, Setup: lines(p.Setup, p.SetupTimeout), Gate: lines(p.Gate, p.GateTimeout),
		Signals: p.CompletionSignal, MaxIterations: f.iterations, Timers: timers(p.Config),
		Budget: loop.Budget{Tokens: p.BudgetTokens, CostUSD: p.BudgetUSD}, Output: output, Env: env,
		Network: network, Mounts: mounts, Limits: limits(p.Config),
		Kill: a.hard.Done(), Observe: log.event, Recovered: a.sayRecovered, Stream: log.stream,
	}
	if err := job.Check(); err != nil {
		return &exitError{status: exitUsage, err: err}
	}
	defer a.sayStopping(cmd.Context(), job.Timers.Interrupt)()
	res, err := job.Run(cmd.Context())
	if res.End != "" {
		if perr := a.printJob(res, f, log); perr != nil {
			return perr
		}
	}
	var unusable *pool.AgentError
	if errors.As(err, &unusable) {
		return &exitError{status: exitParked, err: err}
	}
	if err != nil {
		return err
	}
	asked := cmd.Flags().Changed("completion-signal") || cmd.Flags().Changed("gate") || f.iterations > 1
	return jobVerdict(res, asked)
}

// path is a file named on the command line.
func (a *app) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.host.Dir, name)
}

// given keeps a setting only when it was given for this command: the backlog's files to copy are not a single run's.
func given(cmd *cobra.Command, flag string, value []string) []string {
	if cmd.Flags().Changed(flag) {
		return value
	}
	return nil
}

// promptOf checks the prompt's flags.
func (f runFlags) promptOf(cmd *cobra.Command) (loop.Prompt, error) {
	inline, file := cmd.Flags().Changed("prompt"), cmd.Flags().Changed("prompt-file")
	switch {
	case f.iterations < 1:
		return loop.Prompt{}, usagef("--max-iterations: %d is less than 1", f.iterations)
	case inline && file:
		return loop.Prompt{}, usagef("--prompt and --prompt-file exclude each other; give one")
	case !inline && !file:
		return loop.Prompt{}, usagef("no prompt; give --prompt TEXT or --prompt-file FILE")
	case inline && strings.TrimSpace(f.prompt) == "":
		return loop.Prompt{}, usagef("--prompt: the prompt is empty")
	case inline && len(f.promptArgs) > 0:
		return loop.Prompt{}, usagef("--prompt-arg goes with --prompt-file; an inline prompt is sent as it is")
	case inline:
		return loop.Prompt{Inline: f.prompt}, nil
	}
	args := map[string]string{}
	for _, arg := range f.promptArgs {
		key, value, ok := strings.Cut(arg, "=")
		key = strings.TrimSpace(key)
		switch _, twice := args[key]; {
		case !ok || key == "":
			return loop.Prompt{}, usagef("--prompt-arg: %q is not KEY=VALUE", arg)
		case twice:
			return loop.Prompt{}, usagef("--prompt-arg: %s is given twice", key)
		}
		args[key] = value
	}
	return loop.Prompt{Args: args}, nil
}

// template reads the prompt file; "-" is standard input.
func (a *app) template(ctx context.Context, p *parts, prompt loop.Prompt) (loop.Prompt, error) {
	name := p.PromptFile
	read := func() ([]byte, error) { return os.ReadFile(name) }
	if name == a.path("-") {
		name = "standard input"
		read = func() ([]byte, error) { return a.input(ctx) }
	}
	text, err := read()
	if err != nil {
		return prompt, &exitError{status: exitUsage, err: fmt.Errorf("--prompt-file: %w", err)}
	}
	if strings.TrimSpace(string(text)) == "" {
		return prompt, usagef("--prompt-file: %s is empty", name)
	}
	prompt.Template, prompt.Name = string(text), name
	return prompt, nil
}

// input reads standard input to its end, or until ctx ends: a read from a terminal cannot be called off, so it ends with
// the process then.
func (a *app) input(ctx context.Context) (text []byte, err error) {
	read := make(chan struct{})
	var all []byte
	var failed error
	go func() {
		defer close(read)
		all, failed = io.ReadAll(a.host.Stdin)
	}()
	select {
	case <-read:
		return all, failed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (f runFlags) output(a *app) (*loop.Output, error) {
	if f.outputTag == "" {
		if f.schema != "" {
			return nil, usagef("--output-schema needs --output-tag TAG")
		}
		return nil, nil
	}
	o := &loop.Output{Tag: f.outputTag}
	if f.schema != "" {
		var err error
		if o.Schema, err = os.ReadFile(a.path(f.schema)); err != nil {
			return nil, usagef("--output-schema: %v", err)
		}
	}
	return o, nil
}

// jobVerdict is the exit status of a run.
func jobVerdict(r pool.JobResult, signalAsked bool) error {
	switch r.End {
	case loop.EndDone, loop.EndNoChange:
		return nil
	case loop.EndInterrupted:
		return errInterrupted
	case loop.EndUnavailable:
		return &exitError{status: exitParked, err: r.Err}
	case loop.EndPrompt:
		return &exitError{status: exitUsage, err: r.Err}
	case loop.EndMaxed:
		failed := r.Failure != nil || r.GateRan && !r.GatePassed()
		if !failed && !signalAsked {
			return nil // one iteration was asked for, and it has ended well
		}
	}
	err := r.Err
	if err == nil {
		err = fmt.Errorf("the run ended: %s", r.End)
	}
	return &exitError{status: exitIncomplete, err: err}
}

// printJob prints what the run came to.
func (a *app) printJob(r pool.JobResult, f runFlags, log *jobLog) error {
	if a.json {
		return a.ui.json(jobJSON(r, log))
	}
	row := func(name, format string, args ...any) {
		a.ui.printf("%-18s %s\n", name+":", cleanLine(fmt.Sprintf(format, args...)))
	}
	row("Iterations", "%d of %d", len(r.Iterations), f.iterations)
	row("Completion signal", "%s", orNone(r.Signal))
	for _, c := range r.Gate {
		state := "passed"
		if !c.Passed() {
			state = fmt.Sprintf("failed with exit status %d", c.ExitCode)
		}
		row("Gate", "%s: %s", c.Command, state)
	}
	branch := r.Branch
	if r.Merged != "" {
		branch = r.Target // the scratch branch is gone
	}
	row("Branch", "%s", branch)
	var shas []string
	for _, c := range r.Commits {
		shas = append(shas, shortSHA(c.SHA))
	}
	row("Commits", "%s", orNone(strings.Join(shas, ", ")))
	if r.Merged != "" {
		row("Merged", "into %s as %s", r.Target, shortSHA(r.Merged))
	}
	if r.WIP != "" {
		row("Uncommitted", "saved as %s", shortSHA(r.WIP))
	}
	if r.Tree != "" {
		row("Worktree", "%s", r.Tree)
	}
	if u := r.Usage; u.Input+u.Output > 0 {
		row("Tokens", "in %d, out %d, cache read %d, cache written %d", u.Input, u.Output, u.CacheRead, u.CacheWrite)
	} else {
		row("Tokens", "not reported")
	}
	row("Logs", "%s", log.dir)
	for _, w := range r.Warnings {
		a.ui.warn(w)
	}
	if r.Output != nil {
		a.ui.printf("%s\n", clean(outputText(r.Output)))
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// outputText is the validated JSON, or the text between the tags.
func outputText(o *loop.OutputValue) string {
	if o.JSON != nil {
		return string(o.JSON)
	}
	return o.Raw
}
