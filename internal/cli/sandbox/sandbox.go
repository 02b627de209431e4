// Package sandbox has the commands for sandboxes and their images: `ralph sandbox`, `image`, `docker` and `podman`.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/attack"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/progress"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/job"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/escape"
)

// NewCommand returns `ralph sandbox`.
func NewCommand(a *compose.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "sandbox", Short: "Look at sandboxes, and run commands in one",
		Example: "  ralph sandbox check\n  ralph sandbox exec --allow goproxy.example.com -- go test ./...",
		GroupID: compose.GroupLook,
	}
	cmd.AddCommand(newSandboxCheckCommand(a), newSandboxExecCommand(a), newSandboxLoginCommand(a))
	return cmd
}

const execLong = `Run a command in a sandbox, over a fresh worktree of the current branch, and pass on its exit status. Its
commits stay on a branch, uncommitted changes are saved, and your checkout is not touched.`

func newSandboxExecCommand(a *compose.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "exec [FLAGS] -- COMMAND [ARG...]", Short: "Run a command in a sandbox", Long: execLong,
		Example: "  ralph sandbox exec -- sh -c 'id; ls /'\n  ralph sandbox exec --sandbox docker --image ralph:app -- make test",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.Usagef("%s needs a command after --", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runSandboxExec(cmd, a, args) },
	}
	a.Bind(cmd, keys.ForExec)
	return cmd
}

func runSandboxExec(cmd *cobra.Command, a *compose.App, args []string) (err error) {
	p, err := a.OpenRepo(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := p.Startable(cmd.Context()); err != nil {
		return err
	}
	c, err := a.RunConfig(cmd.Context(), p)
	if err != nil {
		return err
	}
	if c.Env, err = a.AgentEnv(p.AgentEnv); err != nil {
		return err
	}
	if compose.ShowsHost(c.Sandboxes) {
		c.Env = append(a.SandboxEnv(p.Config), c.Env...)
	}
	ctx, cancel := a.WhileRead(cmd.Context())
	defer cancel()
	res, err := job.Job{
		Run: c, Kill: a.Hard.Done(), Recovered: progress.NoteRecovered(a.UI),
		Command: &run.Command{Argv: args, Stdin: a.Host.Stdin, Stdout: a.UI.Out, Stderr: a.UI.Err, Grace: p.StopGrace},
	}.Do(ctx)
	if err != nil {
		return err
	}
	r := res.Record
	for _, w := range r.Warnings {
		a.UI.Note("ralph: %s", screen.CleanLine(hint.Raising(w)))
	}
	if kept := hint.KeptWork(r.Commits, r.Branch, r.WIP); kept != "" {
		a.UI.Note("ralph: %s; %s", kept, hint.DropWith(r.Key))
	}
	switch {
	case r.Facts.Exit != nil && *r.Facts.Exit == 0:
		return nil
	case r.Facts.Exit != nil:
		why := cmp.Or(r.Facts.EndDetail, fmt.Sprintf("the command ended with status %d", *r.Facts.Exit))
		return &exit.Error{Status: *r.Facts.Exit, Err: errors.New(why)}
	case r.Verdict.Outcome == journal.Interrupted:
		return exit.ErrInterrupted
	}
	return errors.New(report.Reason(r.Verdict.Reason))
}

func newSandboxCheckCommand(a *compose.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "check", Short: "List the sandboxes that work here, and attack the chosen one",
		Long: "List each sandbox provider: whether it works here, or what is missing and how to fix it, and what it isolates. Then attack\n" +
			"the chosen one, from inside and through its output. Exit status 1 when an attack succeeds, or cannot be tried.",
		Example: "  ralph sandbox check\n  ralph sandbox check --sandbox docker --image ralph:app --json",
		Args:    exit.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runSandboxCheck(cmd, a) },
	}
	a.AddJSON(cmd)
	a.Bind(cmd, keys.ForExec)
	return cmd
}

// ProviderData is one row of the table of providers.
type ProviderData struct {
	Name      string              `json:"name"`
	Usable    bool                `json:"usable"`
	Why       string              `json:"why,omitempty"`
	Isolation sandboxes.Isolation `json:"isolation"`
	Network   string              `json:"network"` // "allow-list", "own policy" or "open"
	Egress    bool                `json:"egress"`
	Limits    bool                `json:"limits"`
	Secrets   bool                `json:"secrets_outside"`
	Weaker    string              `json:"weaker,omitempty"`
}

func runSandboxCheck(cmd *cobra.Command, a *compose.App) error {
	loaded, err := a.Config(cmd)
	if err != nil {
		return err
	}
	p := &compose.Parts{Config: loaded.Config, Loaded: loaded, Top: a.Dir()}
	var list []ProviderData
	registry := a.SandboxRegistry(p)
	for _, name := range registry.Names() {
		provider, err := registry.Lookup(name)
		if err != nil {
			return err
		}
		c := provider.Capabilities()
		d := ProviderData{
			Name:      name,
			Usable:    true,
			Isolation: c.Isolation,
			Network:   networkWord(c),
			Egress:    c.Egress,
			Limits:    c.Limits,
			Secrets:   c.Secrets,
			Weaker:    c.Weaker,
		}
		if err := provider.Check(cmd.Context()); err != nil {
			d.Usable, d.Why = false, hint.SandboxWhy(name, err)
		}
		list = append(list, d)
	}
	provider, err := a.Sandbox(cmd.Context(), p)
	var probes []ProbeData
	if err == nil && provider.Capabilities().Isolated() {
		if probes, err = attackSandbox(cmd.Context(), provider); err != nil {
			unusable(list, provider.Name(), err)
		}
	}
	if perr := printCheck(a, list, provider, probes); perr != nil {
		return perr
	}
	if err != nil {
		return err
	}
	if err = verdictOf(provider, probes); err == nil && !a.JSON {
		a.UI.Printf("%s.\n", stopped(provider.Name(), probes))
	}
	return err
}

// unusable corrects the row of a sandbox that passed its own check and then did not open.
func unusable(list []ProviderData, name string, err error) {
	for i := range list {
		if list[i].Name == name && list[i].Usable {
			list[i].Usable, list[i].Why = false, hint.SandboxWhy(name, err)
		}
	}
}

func printCheck(a *compose.App, list []ProviderData, provider sandboxes.Provider, probes []ProbeData) error {
	if a.JSON {
		out := map[string]any{"providers": list, "chosen": "", "attacks": probes}
		if provider != nil {
			out["chosen"] = provider.Name()
		}
		return a.UI.JSON(out)
	}
	rows := [][]string{{"SANDBOX", "USABLE", "ISOLATION", "NETWORK", "LIMITS", "SECRETS"}}
	for _, d := range list {
		rows = append(rows, []string{d.Name, word(d.Usable, "yes", "no"), string(d.Isolation), d.Network, word(d.Limits, "held", "none"),
			word(d.Secrets, "stay outside", "inside")})
	}
	a.UI.Table(rows)
	for _, d := range list {
		if d.Weaker != "" {
			a.UI.Printf("%s isolates less than the others:\n", d.Name)
			for way := range strings.SplitSeq(d.Weaker, "; ") {
				a.UI.Printf("%s\n", a.UI.Wrapped("  - "+way, 4))
			}
		}
		if d.Why != "" {
			a.UI.Printf("%s\n", a.UI.Wrapped(d.Name+": "+screen.CleanLine(d.Why), 2))
		}
	}
	if len(probes) == 0 {
		return nil
	}
	a.UI.Printf("\nAttacks from inside %s:\n", provider.Name())
	for _, pr := range probes {
		mark, detail := a.UI.Paint(screen.Green, "stopped"), ""
		switch {
		case pr.Breach != "":
			mark, detail = a.UI.Paint(screen.Red, "BROKEN "), pr.Breach
			if pr.More > 0 {
				detail += fmt.Sprintf(" (and %d more)", pr.More)
			}
		case pr.Untried != "":
			mark, detail = a.UI.Paint(screen.Red, "UNTRIED"), pr.Untried
		case pr.Known:
			mark = a.UI.Paint(screen.Yellow, "WEAK   ")
		}
		line := pr.What
		if detail != "" {
			line += ": " + detail
		}
		a.UI.Printf("  %s  %s\n", mark, line)
	}
	return nil
}

func verdictOf(provider sandboxes.Provider, probes []ProbeData) error {
	if !provider.Capabilities().Isolated() {
		return &exit.Error{
			Status: exit.Failed, Err: fmt.Errorf("%s isolates nothing, so no attack was tried", provider.Name()),
			Hint: "choose " + compose.StrongerThan(provider.Name()),
		}
	}
	var broken, untried []string
	for _, pr := range probes {
		if pr.Breach != "" {
			broken = append(broken, pr.What)
		} else if pr.Untried != "" {
			untried = append(untried, pr.What)
		}
	}
	switch {
	case len(broken) > 0:
		return fmt.Errorf("%s succeeded: %s", screen.Plural(len(broken), "attack"), strings.Join(broken, "; "))
	case len(untried) > 0:
		return fmt.Errorf("%s could not be made: %s", screen.Plural(len(untried), "attack"), strings.Join(untried, "; "))
	}
	return nil
}

// stopped counts the attacks that the sandbox has stopped.
func stopped(name string, probes []ProbeData) string {
	weak := 0
	for _, pr := range probes {
		if pr.Known {
			weak++
		}
	}
	text := fmt.Sprintf("%s stopped %d of %s", name, len(probes)-weak, screen.Plural(len(probes), "attack"))
	if weak > 0 {
		text += "; it is not designed to stop the others"
	}
	return text
}

// networkWord says what controls outgoing connections.
func networkWord(c sandboxes.Capabilities) string {
	if c.OwnEgress {
		return "own policy"
	}
	return word(c.Egress, "allow-list", "open")
}

func word(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

// ProbeData is the result of one attack, inside a sandbox or on the host through the sandbox's output.
type ProbeData struct {
	What    string `json:"what"`
	Stopped bool   `json:"stopped"`
	// Known means that the provider does not claim to stop this attack.
	Known bool `json:"known,omitempty"`
	// Breach is the first success of the attack, More the number of further ones.
	Breach string `json:"breach,omitempty"`
	More   int    `json:"more,omitempty"`
	// Untried is the reason why the attack could not be made.
	Untried string `json:"untried,omitempty"`
}

// attackSandbox makes all attacks on a sandbox. A successful one does not harm the host. The error says why none could be made.
func attackSandbox(ctx context.Context, provider sandboxes.Provider) ([]ProbeData, error) {
	var probes []ProbeData
	var untried error
	tried := false
	for _, r := range escape.Try(ctx, attack.All(), provider) {
		p := ProbeData{What: r.Name, Stopped: len(r.Breaches) == 0 && r.Err == nil && !r.Known, Known: r.Known}
		if len(r.Breaches) > 0 {
			p.Breach, p.More = screen.Shorten(screen.CleanLine(r.Breaches[0]), 120), len(r.Breaches)-1
		}
		if r.Err != nil {
			p.Untried = screen.Shorten(screen.CleanLine(r.Err.Error()), 160)
			untried = cmp.Or(untried, fmt.Errorf("sandbox %s: %w", provider.Name(), r.Err))
		}
		tried = tried || r.Err == nil
		probes = append(probes, p)
	}
	if !tried && untried != nil {
		return nil, untried
	}
	return probes, nil
}
