package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/scaffold"
)

const initLong = `Set a repository up for ralph: write .ralph/ with a configuration, a prompt, an image for the agent and a backlog with an
example. What is not given as a flag is asked on a terminal; without one, --agent and --sandbox are required. In a clone
of a project on GitHub or GitLab the issues are those of the project, and no backlog is written, unless --tracker local
says so.

Nothing is ever overwritten: where .ralph exists, init does nothing and exits with status 1.`

// initOptions are the choices given as flags; a nil one is asked for.
type initOptions struct {
	agent, sandbox, model *string
	tracker               *string
	command               []string
	skip                  *bool
	gate                  []string
	gateGiven             bool
}

func newInitCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Set a repository up for ralph",
		Long:  initLong,
		Example: "  ralph init\n" +
			"  ralph init --agent claude-code --sandbox none --gate 'go test ./...'\n" +
			"  ralph init --agent command --agent-command 'my-agent --quiet' --sandbox none",
		GroupID: groupSetUp,
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runInit(cmd, a) },
	}
	a.bind(cmd, "agent", "model", "agent-command", "skip-permissions", "sandbox", "gate", "tracker")
	return cmd
}

func runInit(cmd *cobra.Command, a *app) error {
	ctx := cmd.Context()
	if err := a.checkRepo(); err != nil {
		return err
	}
	top, err := a.top(ctx)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(top, scaffold.Dir)); err == nil {
		return existsAlready(filepath.Join(top, scaffold.Dir))
	}
	given, err := initFlags(cmd, a)
	if err != nil {
		return err
	}
	choices, err := a.decide(ctx, top, given)
	if err != nil {
		if errors.Is(err, errInterrupted) {
			return fmt.Errorf("%w; nothing was written", err)
		}
		return err
	}
	choices.Prompt = defaultPrompt()
	files, err := scaffold.Files(choices)
	if err != nil {
		return err
	}
	if err := scaffold.Write(top, files); err != nil {
		if errors.Is(err, scaffold.ErrExists) {
			return existsAlready(filepath.Join(top, scaffold.Dir))
		}
		return err
	}
	a.printScaffold(top, choices, files)
	return nil
}

func existsAlready(dir string) error {
	return &exitError{status: exitFailed, err: fmt.Errorf("%s exists already; edit %s, or move it away to start anew",
		dir, filepath.Join(dir, "config.yaml"))}
}

// initFlags reads the flags alone: what files and variables say is no choice for this repository.
func initFlags(cmd *cobra.Command, a *app) (initOptions, error) {
	loaded, err := config.Load(config.Sources{Flags: cmd.Flags(), Dir: a.host.Dir, Choices: a.choices(), Partial: true})
	if err != nil {
		return initOptions{}, err
	}
	c := loaded.Config
	if c.Agent != "command" && len(c.AgentCommand) > 0 {
		return initOptions{}, usagef("--agent-command needs --agent command, not %s", c.Agent)
	}
	o := initOptions{command: c.AgentCommand, gate: c.Gate}
	if loaded.Origin("agent").Source == config.FromFlag {
		o.agent = &c.Agent
	}
	if loaded.Origin("sandbox").Source == config.FromFlag {
		o.sandbox = &c.Sandbox
	}
	if loaded.Origin("model").Source == config.FromFlag {
		o.model = &c.Model
	}
	if loaded.Origin("skip-permissions").Source == config.FromFlag {
		o.skip = &c.SkipPermissions
	}
	if loaded.Origin("tracker").Source == config.FromFlag && c.Tracker != "auto" {
		o.tracker = &c.Tracker
	}
	o.gateGiven = loaded.Origin("gate").Source == config.FromFlag
	return o, nil
}

// decide fills in what the flags leave open, by asking or by refusing.
func (a *app) decide(ctx context.Context, top string, o initOptions) (scaffold.Choices, error) {
	c := scaffold.Choices{Label: defaultLabel(), Command: o.command, Gate: o.gate}
	if o.agent != nil {
		c.Agent = *o.agent
	}
	if o.sandbox != nil {
		c.Sandbox = *o.sandbox
	}
	if o.model != nil {
		c.Model = *o.model
	}
	if o.skip != nil {
		c.SkipPermissions = *o.skip
	}
	forge, err := o.place(ctx, top, &c)
	if err != nil {
		return c, err
	}
	if !a.host.Interactive {
		return c, missing(c, a.choices())
	}
	ask := newAsker(ctx, a.ui, a.host.Stdin)
	if forge != "" {
		if err := ask.place(ctx, forge, &c); err != nil {
			return c, err
		}
	}
	if c.Agent == "" {
		if c.Agent, err = ask.choose(ctx, "Which agent does the work?", a.agentOptions()); err != nil {
			return c, err
		}
	}
	if c.Agent == "command" && len(c.Command) == 0 {
		if c.Command, err = ask.words(ctx, "Which program is it?", "it reads the prompt on standard input"); err != nil {
			return c, err
		}
	}
	if o.model == nil && c.Agent != "command" {
		if c.Model, err = ask.text(ctx, "Which model?", "Enter: the agent's own default", ""); err != nil {
			return c, err
		}
	}
	if c.Sandbox == "" {
		if c.Sandbox, err = ask.choose(ctx, "Where do agents and checks run?", a.sandboxOptions()); err != nil {
			return c, err
		}
	}
	if o.skip == nil && c.Agent != "command" && !a.isolates(c.Sandbox) {
		question := "May the agent act without asking, on this host?"
		if c.SkipPermissions, err = ask.yes(ctx, question, "it can do little unattended otherwise"); err != nil {
			return c, err
		}
	}
	if !o.gateGiven {
		guess, note := guessGate(top), "Enter: as shown"
		if guess == "" {
			note = "Enter: none, for now"
		}
		line, err := ask.text(ctx, "Which command must pass before work counts as done?", note, guess)
		if err != nil {
			return c, err
		}
		if line != "" {
			c.Gate = []string{line}
		}
	}
	return c, nil
}

// missing names the flags that have no default and were not given.
func missing(c scaffold.Choices, choices map[string][]string) error {
	var flags []string
	if c.Agent == "" {
		flags = append(flags, "--agent ("+strings.Join(choices["agent"], ", ")+")")
	}
	if c.Agent == "command" && len(c.Command) == 0 {
		flags = append(flags, "--agent-command ('PROGRAM ARG…')")
	}
	if c.Sandbox == "" {
		flags = append(flags, "--sandbox ("+strings.Join(choices["sandbox"], ", ")+")")
	}
	if len(flags) == 0 {
		return nil
	}
	return usagef("there is no terminal to ask on; give %s", strings.Join(flags, " and "))
}

// guessGate is the usual test command of the kind of project that stands at top; empty when there is no telling.
func guessGate(top string) string {
	for _, g := range []struct{ file, line string }{
		{"go.mod", "go vet ./... && go test ./..."},
		{"Cargo.toml", "cargo test"},
		{"package.json", "npm test"},
		{"pyproject.toml", "python -m pytest"},
		{"Makefile", "make test"},
	} {
		if info, err := os.Lstat(filepath.Join(top, g.file)); err == nil && info.Mode().IsRegular() {
			return g.line
		}
	}
	return ""
}

func (a *app) agentOptions() []option {
	var out []option
	for _, name := range a.choices()["agent"] {
		out = append(out, option{name: name})
	}
	return out
}

func (a *app) sandboxOptions() []option {
	var out []option
	for _, name := range a.choices()["sandbox"] {
		o := option{name: name}
		if !a.isolates(name) {
			o.note = "on this host, without isolation"
		} else if name == "landlock" {
			o.note = "on this host, below access rules: weaker than the others"
		}
		out = append(out, o)
	}
	return out
}

func defaultLabel() string {
	k, _ := config.Lookup("labels")
	labels, _ := k.Default.([]string)
	return labels[0]
}

func (a *app) printScaffold(top string, c scaffold.Choices, files []scaffold.File) {
	a.ui.printf("Wrote %s:\n", cleanLine(filepath.Join(top, scaffold.Dir)))
	for _, f := range files {
		a.ui.printf("  %s\n", f.Path)
	}
	a.ui.printf("\nNext:\n")
	step := 0
	next := func(format string, args ...any) {
		step++
		a.ui.printf("  %d. "+format+"\n", append([]any{step}, args...)...)
	}
	if len(c.Gate) == 0 {
		next("Set `gate` in .ralph/config.yaml, so that ralph checks the work itself.")
	}
	if !c.SkipPermissions && c.Agent != "command" && !a.isolates(c.Sandbox) {
		next("Decide what %s may do unattended: `skip-permissions: true` or a `permission-mode` in .ralph/config.yaml.", c.Agent)
	}
	if c.Backlog {
		next("Write an issue: edit .ralph/backlog/example.md, and put %s into its labels.", c.Label)
	} else {
		next("Put the label %s on an issue of the project; for a backlog of files start anew with --tracker local.", c.Label)
	}
	next("ralph doctor            says what is still missing.")
	next("ralph work --dry-run    shows what would be worked.")
	next("ralph work              works it.")
}
