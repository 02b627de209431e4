package work

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/progress"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/pool/job"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/run"
)

const runLong = `Run one prompt, without a backlog: start the agent up to --max-iterations times, until its last message contains the
completion signal and the gate passes. The branch strategy says where its commits go:

  head           into your checkout; the default with sandbox none, the only sandbox that allows it
  merge-to-head  onto a scratch branch in a worktree, then merged into the current branch; the default otherwise
  branch         onto the branch --branch, in a worktree that stays for the next run

Ralph does not start during an unfinished merge, rebase or the like in your checkout.

An inline prompt is sent as it is. In a prompt file (- is standard input) {{KEY}} is replaced by --prompt-arg
KEY=VALUE and by the built-ins branch, source_branch, base, iteration, max_iterations, feedback, gate and signal, and
!` + "`command`" + ` by what the command prints.`

const runExample = `  ralph run --sandbox none --prompt 'Fix the flaky test in pool/'
  ralph run --prompt-file refactor.md --prompt-arg area=auth \
    --max-iterations 5 --branch-strategy merge-to-head
  ralph run --agent codex --model gpt-5.5 --effort high --prompt 'Say hi'
  ralph run --prompt 'List the packages in <out>JSON</out>' \
    --output-tag out --output-schema schema.json`

// runFlags are the flags of `ralph run` that are not settings.
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

// NewRun returns `ralph run`.
func NewRun(a *compose.App) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "run", Short: "Run one prompt, without a backlog", Long: runLong, Example: runExample,
		Annotations: compose.Marks(compose.Sweeps),
		GroupID:     compose.GroupWork, Args: exit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runRun(cmd, a, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.prompt, "prompt", "", "the prompt, sent as it is")
	flags.StringArrayVar(&f.promptArgs, "prompt-arg", nil, "`KEY=VALUE` for the prompt file")
	flags.StringVar(&a.Repo, "cwd", "", "same as --repo")
	flags.StringVar(&f.name, "name", "", "name of the run, shown on every line")
	flags.StringVar(&f.logFile, "log-file", "", "write progress and what the agent says to this `file`, not to the terminal")
	flags.StringVar(&f.strategy, "branch-strategy", "", "where commits go: head, merge-to-head, branch (default: "+
		"head with sandbox none, else merge-to-head)")
	flags.StringVar(&f.branch, "branch", "", "the branch of --branch-strategy branch")
	flags.BoolVar(&f.dirty, "allow-dirty", false, "continue in a branch's worktree that has uncommitted changes")
	flags.StringVar(&f.outputTag, "output-tag", "", "print the text between the agent's last <`TAG`> and </TAG>")
	flags.StringVar(&f.schema, "output-schema", "", "JSON Schema `file` that the output must satisfy")
	flags.IntVar(&f.iterations, "max-iterations", 1, "most agent processes")
	_ = cmd.RegisterFlagCompletionFunc("branch-strategy", cobra.FixedCompletions(strategies(), cobra.ShellCompDirectiveNoFileComp))
	a.AddJSON(cmd)
	a.Bind(cmd, keys.ForPrompt)
	return cmd
}

func strategies() (names []string) {
	for _, s := range job.Strategies() {
		names = append(names, string(s))
	}
	return names
}

func runRun(cmd *cobra.Command, a *compose.App, f runFlags) (err error) {
	sent, err := f.promptOf(cmd)
	if err != nil {
		return err
	}
	output, err := f.output(a)
	if err != nil {
		return err
	}
	p, err := a.OpenRepo(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	c, err := promptConfig(cmd.Context(), a, p)
	if err != nil {
		return err
	}
	log, err := newJobLog(a, f, p.Secrets)
	if err != nil {
		return err
	}
	defer log.close()
	if sent.Template != "" || sent.Inline == "" {
		if sent, err = template(cmd.Context(), a, p, sent); err != nil {
			return err
		}
	}
	c.Prompt, c.Copy, c.MaxIterations = sent, p.Copy, f.iterations
	asked := cmd.Flags().Changed("completion-signal") || cmd.Flags().Changed("gate") || f.iterations > 1
	traces, err := progress.Tracer(a, p, projectName(a, p))
	if err != nil {
		return err
	}
	defer traces.Close()
	c.Emit = func(e journal.Event) {
		traces.Observe(e)
		log.check(e)
	}
	j := job.Job{
		Run: c, Name: f.name, Strategy: job.Strategy(f.strategy), Branch: f.branch, AllowDirty: f.dirty, SignalOptional: !asked,
		Output: output, Kill: a.Hard.Done(), Observe: log.event, Recovered: progress.NoteRecovered(a.UI),
	}
	if j.Place() == job.StrategyHead && !cmd.Flags().Changed("copy") {
		j.Run.Copy = nil // the checkout has these files already
	}
	if err := j.Check(); err != nil {
		return jobUsage(err)
	}
	if err := NoAgent(a, p, j.Run); err != nil {
		return err
	}
	for _, text := range hint.Estimated(c) {
		log.print("%s", text)
	}
	defer a.NoteStopping(cmd.Context(), p.StopGrace)()
	res, err := j.Do(cmd.Context())
	if err != nil {
		return onFullDisk(p, err)
	}
	return conclude(a, p, redactedResult(res, p.Secrets), f)
}

// promptConfig returns the configuration of a run of one prompt.
func promptConfig(ctx context.Context, a *compose.App, p *compose.Parts) (run.Config, error) {
	if err := p.Startable(ctx); err != nil {
		return run.Config{}, err
	}
	c, err := a.RunConfig(ctx, p)
	if err != nil {
		return run.Config{}, err
	}
	if err := a.WithAgent(p, &c); err != nil {
		return run.Config{}, err
	}
	c.Attempts = nil // only issues have attempts
	return c, nil
}

// conclude prints the result. Its error decides the exit status.
func conclude(a *compose.App, p *compose.Parts, res run.Result, f runFlags) error {
	if err := printJob(a, res, f); err != nil {
		return err
	}
	err := jobVerdict(res.Record, res.Unavailable)
	text := report.Reason(res.Record.Verdict.Reason)
	for _, w := range res.Record.Warnings {
		text += " " + w.Text
	}
	said := hint.FullDisk(text, p.State)
	if said != "" && (err == nil || hint.For(err) != said) {
		a.UI.Warn(said)
	}
	return err
}

// jobUsage turns an error of a job's strategy into wrong usage that names the flag.
func jobUsage(err error) error {
	var s *job.StrategyError
	switch {
	case !errors.As(err, &s):
	case s.Problem == job.StrategyUnknown:
		return exit.Usagef("--branch-strategy: %q is not one of %s", s.Strategy, strings.Join(strategies(), ", "))
	case s.Problem == job.StrategyNeedsNone:
		return exit.Usagef("branch strategy head works in your checkout and needs sandbox none; "+
			"with sandbox %s use merge-to-head or branch", s.Sandbox)
	case s.Problem == job.StrategyNoBranch:
		return exit.Usagef("--branch-strategy branch needs a branch name: --branch NAME")
	case s.Problem == job.StrategyHasBranch:
		return exit.Usagef("--branch goes with --branch-strategy branch, not %s", s.Strategy)
	case s.Problem == job.StrategyCopy:
		return exit.Usagef("--copy needs a worktree: --branch-strategy merge-to-head or branch")
	}
	return &exit.Error{Status: exit.Usage, Err: err}
}

// promptOf checks the flags of the prompt.
func (f runFlags) promptOf(cmd *cobra.Command) (prompt.Prompt, error) {
	inline, file := cmd.Flags().Changed("prompt"), cmd.Flags().Changed("prompt-file")
	switch {
	case f.iterations < 1:
		return prompt.Prompt{}, exit.Usagef("--max-iterations: %d is less than 1", f.iterations)
	case inline && file:
		return prompt.Prompt{}, exit.Usagef("--prompt and --prompt-file exclude each other; give one")
	case !inline && !file:
		return prompt.Prompt{}, exit.Usagef("no prompt; give --prompt TEXT or --prompt-file FILE")
	case inline && strings.TrimSpace(f.prompt) == "":
		return prompt.Prompt{}, exit.Usagef("--prompt: the prompt is empty")
	case inline && len(f.promptArgs) > 0:
		return prompt.Prompt{}, exit.Usagef("--prompt-arg goes with --prompt-file; an inline prompt is sent as it is")
	case inline:
		return prompt.Prompt{Inline: f.prompt}, nil
	}
	args := map[string]string{}
	for _, arg := range f.promptArgs {
		key, value, ok := strings.Cut(arg, "=")
		key = strings.TrimSpace(key)
		switch _, twice := args[key]; {
		case !ok || key == "":
			return prompt.Prompt{}, exit.Usagef("--prompt-arg: %q is not KEY=VALUE", arg)
		case twice:
			return prompt.Prompt{}, exit.Usagef("--prompt-arg: %s is given twice", key)
		}
		args[key] = value
	}
	return prompt.Prompt{Args: args}, nil
}

// template reads the prompt file; "-" is standard input.
func template(ctx context.Context, a *compose.App, p *compose.Parts, to prompt.Prompt) (prompt.Prompt, error) {
	name := p.PromptFile
	read := func() ([]byte, error) {
		if p.ShowsKeys(name) {
			return nil, compose.NoTemplate(name)
		}
		return os.ReadFile(name)
	}
	if name == a.Path("-") {
		name = "standard input"
		read = func() ([]byte, error) { return a.ReadInput(ctx, 0) }
	}
	text, err := read()
	if err != nil {
		return to, exit.Usagef("--prompt-file: %w", err)
	}
	if strings.TrimSpace(string(text)) == "" {
		return to, exit.Usagef("--prompt-file: %s is empty", name)
	}
	to.Template, to.Name = string(text), name
	return to, nil
}

func (f runFlags) output(a *compose.App) (*loop.Output, error) {
	if f.outputTag == "" {
		if f.schema != "" {
			return nil, exit.Usagef("--output-schema needs --output-tag TAG")
		}
		return nil, nil
	}
	o := &loop.Output{Tag: f.outputTag}
	if f.schema != "" {
		var err error
		if o.Schema, err = os.ReadFile(a.Path(f.schema)); err != nil {
			return nil, exit.Usagef("--output-schema: %v", err)
		}
	}
	return o, nil
}
