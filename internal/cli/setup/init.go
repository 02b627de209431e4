// Package setup has the commands that configure a repository: `ralph init`, `config` and `trust`.
package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/sandbox"
	"github.com/ralph-pool/ralph/internal/cli/scaffold"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/toolchain"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/tracker"
)

const initLong = `Set a repository up for ralph: write .ralph/ with a configuration, a prompt, an image for the agent and a
backlog with an example. Init asks for what no flag gives. Without a terminal it needs --agent and --sandbox, or --yes, which
accepts all proposals. In a clone of a project on %s the issues are those of the project, and no backlog is written, unless
--tracker local asks for one. For docker and podman init ends with the build of the image, if you agree.

Nothing is ever overwritten: existing files in .ralph stay, and an existing backlog gets no example. If .ralph/config.yaml
exists, init refuses to run.`

// forgeTitles names the trackers of forges.
func forgeTitles(a *compose.App) string {
	var titles []string
	for _, d := range a.Trackers.All() {
		if d.Takes(tracker.OptionProject) {
			titles = append(titles, d.Title)
		}
	}
	return strings.Join(titles, " or ")
}

// given reports whether a key's flag is on the command line. Such a key is not asked for.
type given func(key string) bool

// NewInit returns `ralph init`.
func NewInit(a *compose.App) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Set a repository up for ralph",
		Long:  fmt.Sprintf(initLong, forgeTitles(a)),
		Example: "  ralph init\n" +
			"  ralph init --yes\n" +
			"  ralph init --agent claude-code --sandbox none --gate 'go test ./...'\n" +
			"  ralph init --agent command --agent-command 'my-agent --quiet' --sandbox none",
		GroupID: compose.GroupSetUp,
		Args:    exit.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runInit(cmd, a, yes) },
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "ask nothing: accept all proposals")
	a.Bind(cmd, 0, "agent", "model", "fallback", "attempts", "review", "agent-command", "skip-permissions",
		"sandbox", "setup", "gate", "allow", "allow-private", "tracker")
	return cmd
}

func runInit(cmd *cobra.Command, a *compose.App, yes bool) error {
	ctx := cmd.Context()
	if err := a.CheckRepo(); err != nil {
		return err
	}
	top, err := a.Top(ctx)
	if err != nil {
		return err
	}
	if scaffold.Configured(top) {
		return existsAlready(top)
	}
	choices, said, err := initFlags(cmd, a)
	if err != nil {
		return err
	}
	build, err := decide(ctx, a, top, said, yes, &choices)
	if err != nil {
		if errors.Is(err, exit.ErrInterrupted) {
			return fmt.Errorf("%w; nothing was written", err)
		}
		return err
	}
	choices.Command = portable(top, choices.Command)
	choices.Example = choices.Backlog && !hasBacklog(top)
	choices.Prompt, choices.About = prompt.Default(), a.About(choices.Agent)
	if choices.Others, err = otherTools(a, choices); err != nil {
		return err
	}
	files, err := scaffold.Files(choices)
	if err != nil {
		return err
	}
	if files, err = scaffold.Write(top, files); err != nil {
		if errors.Is(err, scaffold.ErrExists) {
			return existsAlready(top)
		}
		return err
	}
	if err := trustOwn(a, top); err != nil {
		a.UI.Warn(err.Error())
	}
	if !a.UI.Quiet {
		printScaffold(a, top, choices, files)
	}
	if build {
		if !a.UI.Quiet {
			a.UI.Printf("\n")
		}
		if err = sandbox.BuildImage(a, cmd, choices.Sandbox); err != nil {
			err = fmt.Errorf("the files are written, but the image is not built: %w; to try again: ralph image build", err)
		}
	}
	if !a.UI.Quiet { // last, because a build may print more than a screen
		printNext(a, top, choices, build && err == nil)
	}
	return err
}

func existsAlready(top string) error {
	if !scaffold.Configured(top) { // not a folder, but something else with that name
		return exit.Usagef("%s exists already, but is not a folder; move it away", filepath.Join(top, scaffold.Dir))
	}
	return exit.Usagef("%s exists already; edit it, or move %s away to start anew",
		filepath.Join(top, config.File), filepath.Join(top, scaffold.Dir))
}

// initFlags reads the flags only: values of files and variables are no choice for this repository.
func initFlags(cmd *cobra.Command, a *compose.App) (c scaffold.Choices, said given, err error) {
	loaded, err := config.Load(config.Sources{
		Flags:     cmd.Flags(),
		Dir:       a.Host.Dir,
		Choices:   a.Choices(),
		Commanded: a.Commanded(),
		Partial:   true,
	})
	if err != nil {
		return c, nil, err
	}
	set := loaded.Config
	if program := a.About(set.Agent).Program; program != "" && len(set.AgentCommand) > 0 {
		return c, nil, exit.Usagef("--agent-command needs --agent %s, not %s", strings.Join(a.Commanded(), " or "), set.Agent)
	}
	said = func(key string) bool { return loaded.Origin(key).Source == config.FromFlag }
	c = scaffold.Choices{
		Label:           set.Labels[0],
		Model:           set.Model,
		SkipPermissions: set.SkipPermissions,
		Command:         set.AgentCommand,
		Setup:           set.Setup,
		Gate:            set.Gate,
		Allow:           set.Allow,
		AllowPrivate:    set.AllowPrivate,
		Fallback:        set.Fallback,
		Attempts:        set.Attempts,
		Review:          set.Review,
	}
	if said("agent") {
		c.Agent = set.Agent
	}
	if said("sandbox") {
		c.Sandbox = set.Sandbox
	}
	if set.Tracker != "auto" {
		c.Tracker = set.Tracker
	}
	return c, said, nil
}

// decide completes the choices that flags leave open: by asking, or with yes by taking the proposals. Without a terminal and
// without yes it fails if a required one is missing. build says whether to build the image.
func decide(ctx context.Context, a *compose.App, top string, said given, yes bool, c *scaffold.Choices) (build bool, err error) {
	forge, err := place(ctx, a, top, c)
	if err != nil {
		return false, err
	}
	if yes {
		assume(a, c)
	}
	if !a.Host.Interactive || yes {
		if err := missing(a, *c, yes); err != nil {
			return false, err
		}
		err := propose(ctx, a, top, said, c)
		return yes && buildable(a, *c), err
	}
	ask := newAsker(ctx, a.UI, a.Host.Stdin)
	if folder, has := a.Trackers.Folder(); has && forge != nil {
		if err := ask.place(ctx, *forge, folder, c); err != nil {
			return false, err
		}
	}
	if c.Agent == "" {
		if c.Agent, err = ask.choose(ctx, "Which agent does the work?", agentOptions(a)); err != nil {
			return false, err
		}
	}
	named := a.About(c.Agent).Program == "" // its program comes from the user
	if named && len(c.Command) == 0 {
		if c.Command, err = ask.words(ctx, "Which program is it?", "it reads the prompt on standard input"); err != nil {
			return false, err
		}
	}
	if !said("model") && a.About(c.Agent).Models {
		if c.Model, err = ask.text(ctx, "Which model?", "Enter: the agent's own default", ""); err != nil {
			return false, err
		}
	}
	if c.Sandbox == "" {
		if c.Sandbox, err = ask.choose(ctx, "Where do agents and checks run?", sandboxOptions(a)); err != nil {
			return false, err
		}
	}
	if !said("skip-permissions") && !named && !compose.Isolates(c.Sandbox) {
		question := "May the agent act without asking, on this host?"
		if c.SkipPermissions, err = ask.yes(ctx, question, "if not, it can do little"); err != nil {
			return false, err
		}
	}
	if err := propose(ctx, a, top, said, c); err != nil {
		return false, err
	}
	if proposed := c.Setup; len(proposed) > 0 && !said("setup") {
		if c.Setup, err = ask.shellLine(ctx, "Which command fetches and builds the dependencies?", proposed, c.Notes...); err != nil {
			return false, err
		}
		if !slices.Equal(c.Setup, proposed) {
			c.Notes = nil
		}
	}
	if !said("gate") {
		if c.Gate, err = ask.shellLine(ctx, "Which command must pass before work counts as done?", c.Gate); err != nil {
			return false, err
		}
	}
	if buildable(a, *c) {
		build, err = ask.yes(ctx, "Build the image for agents and checks now?", "downloads a base and the agent")
	}
	return build, err
}

// buildable reports whether an image can be built that contains the tools of setup and gate, and that runs of this user can use.
func buildable(a *compose.App, c scaffold.Choices) bool {
	return slices.Contains(compose.Engines(), c.Sandbox) && len(c.Tools.Missing) == 0 && !refusesRoot(a)
}

// refusesRoot reports that the user is root, which containers refuse, and has not configured another user.
func refusesRoot(a *compose.App) bool {
	if os.Getuid() != 0 {
		return false
	}
	own, err := config.Load(config.Sources{
		Environ: a.Host.Env, Dir: a.Host.Dir, Choices: a.Choices(), Commanded: a.Commanded(), Partial: true, Looks: true,
	})
	return err != nil || own.Config.ContainerUser == ""
}

// missing returns an error that names the required flags that are missing.
func missing(a *compose.App, c scaffold.Choices, yes bool) error {
	var flags []string
	choices := a.Choices()
	const own = "--agent-command 'PROGRAM ARG…'"
	if c.Agent == "" {
		commanded := strings.Join(a.Commanded(), " or ")
		rest := slices.DeleteFunc(slices.Clone(choices["agent"]), func(name string) bool { return slices.Contains(a.Commanded(), name) })
		flags = append(flags, "--agent ("+strings.Join(rest, ", ")+", or "+commanded+" with "+own+")")
	} else if a.About(c.Agent).Program == "" && len(c.Command) == 0 {
		return exit.Usagef("--agent %s needs %s", c.Agent, own)
	}
	if c.Sandbox == "" {
		flags = append(flags, "--sandbox ("+strings.Join(choices["sandbox"], ", ")+")")
	}
	switch {
	case len(flags) == 0:
		return nil
	case yes:
		return exit.Usagef("--yes finds no agent in PATH to propose; give %s", strings.Join(flags, " and "))
	}
	return exit.Usagef("no terminal to ask on; give %s, or --yes to accept all proposals", strings.Join(flags, " and "))
}

func agentOptions(a *compose.App) []option {
	var out []option
	for _, name := range a.Choices()["agent"] {
		out = append(out, option{name: name, proposed: name == proposedAgent(a)})
	}
	return out
}

func sandboxOptions(a *compose.App) []option {
	var out []option
	for _, name := range a.Choices()["sandbox"] {
		o := option{name: name}
		switch {
		case name == "auto":
			o.note = "native; ralph stops if that does not work: it uses no weaker one"
		case name == "native":
			o.note = "on this host, in namespaces: needs no engine and no image"
		case name == "docker", name == "podman":
			o.note = "a container: needs " + name + " and an image"
		case name == "sbx":
			o.note = "a microVM of Docker Sandboxes: needs a Docker login"
		case name == "landlock":
			o.note = "on this host, with access rules only: weaker than the others"
		case !compose.Isolates(name):
			o.note = "on this host, without isolation"
		}
		out = append(out, o)
	}
	return out
}

func printScaffold(a *compose.App, top string, c scaffold.Choices, files []scaffold.File) {
	a.UI.Printf("Wrote %s:\n", screen.CleanLine(filepath.Join(top, scaffold.Dir)))
	for _, f := range files {
		a.UI.Printf("  %s\n", f.Path)
	}
	printChecks(a, c)
}

// printNext prints the next steps. built means that the image is built.
func printNext(a *compose.App, top string, c scaffold.Choices, built bool) {
	a.UI.Printf("\nNext:\n")
	step := 0
	next := func(format string, args ...any) {
		step++
		a.UI.Printf("%s\n", a.UI.Wrapped(fmt.Sprintf("  %d. "+format, append([]any{step}, args...)...), 5))
	}
	inside := slices.Contains(compose.Engines(), c.Sandbox) // the agent is in the image then
	if inside && refusesRoot(a) {
		next("You are root, but agents in containers do not run as root by default: run ralph as another user, or add " +
			"--container-files copy --container-user 1000:1000, so that ralph copies the files for another user; both are also keys of " +
			"your own configuration.")
	}
	if p := c.About.Program; p != "" && !inside && a.LookPath(p) == "" {
		next("%s; %s.", agents.NotFound(p), hint.Agent)
	}
	if p := programAt(top, c.Command); p != "" && !inside && a.LookPath(p) == "" {
		next("%s; %s.", agents.NotFound(p), hint.Agent)
	}
	if agent, err := a.Agents().Lookup(c.Agent); err == nil && c.Sandbox != "sbx" {
		if _, trouble := a.AgentLogin(agent); trouble != "" {
			next("%s; %s.", screen.CleanLine(trouble), c.About.Login.Hint)
		}
	}
	if len(c.Gate) == 0 {
		next("Set `gate` in .ralph/config.yaml to the command that tests your project: ralph found none. Without a gate ralph believes the agent.")
	}
	if !c.SkipPermissions && c.About.Program != "" && !compose.Isolates(c.Sandbox) {
		next("Decide what %s may do unattended: `skip-permissions: true` or a `permission-mode` in .ralph/config.yaml.", c.Agent)
	}
	switch {
	case c.Example:
		next("Write an issue: ralph new 'TITLE'. It gets the label %s; ralph works only issues with this label. "+
			"backlog/example.md does not have it yet.", c.Label)
	case c.Backlog:
		next("Write an issue: ralph new 'TITLE'.")
	default:
		next("Put the label %s on an issue of the project: ralph works only issues with this label. "+
			"(For a backlog of files: move .ralph away, then ralph init --tracker local.)",
			c.Label)
	}
	if inside && len(c.Tools.Missing) > 0 {
		next("Write into .ralph/%s how to install %s, which setup or gate runs: ralph knows no package for this.",
			scaffold.ImageFile(c.Sandbox), strings.Join(c.Tools.Missing, " and "))
	}
	if wanted, has := toolchain.OldNode(top, filepath.Join(top, scaffold.Dir, scaffold.ImageFile(c.Sandbox))); inside && wanted != "" {
		next("Name a newer image after FROM in .ralph/%s: package.json wants Node.js %s, and this one has %d.",
			scaffold.ImageFile(c.Sandbox), screen.CleanLine(wanted), has)
	}
	if inside && !built {
		next("ralph image build       makes the image that agents and checks run in.")
	}
	next("Commit .ralph to use it in other clones. Here it works without a commit.")
	next("ralph doctor            shows what is still missing.")
	next("ralph work --dry-run    shows what would be worked.")
	next("ralph work              works the issues.")
}
