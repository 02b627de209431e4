package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/sandboxes"
)

// sandboxKeys are the settings of commands that only need a sandbox.
func sandboxKeys() []string {
	return []string{
		"sandbox", "allow", "mounts", "sandbox-show", "image", "memory-mb", "cpus", "pids", "scratch-mb", "container-user",
		"container-runtime", "container-files", "container-unbounded", "container-args", "agent", "agent-command", "agent-env", "stop-grace", "state-dir",
	}
}

func newSandboxCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "sandbox", Short: "Look at sandboxes, and run commands in one",
		Example: "  ralph sandbox check\n  ralph sandbox exec --allow proxy.golang.org -- go test ./...",
		GroupID: groupLook,
	}
	cmd.AddCommand(newSandboxCheckCommand(a), newSandboxExecCommand(a), newSandboxLoginCommand(a))
	return cmd
}

const execLong = `Run a command in a sandbox over a fresh worktree of the branch you are on. Its exit status is passed on. What it commits
stays on a branch, what it changes without a commit is saved; your checkout is not touched.`

func newSandboxExecCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "exec [FLAGS] -- COMMAND [ARG...]", Short: "Run a command in a sandbox", Long: execLong,
		Example: "  ralph sandbox exec -- sh -c 'id; ls /'\n  ralph sandbox exec --sandbox docker --image ralph:app -- make test",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s needs a command after --", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runSandboxExec(cmd, a, args) },
	}
	a.bind(cmd, sandboxKeys()...)
	return cmd
}

func runSandboxExec(cmd *cobra.Command, a *app, args []string) error {
	p, err := a.openRepo(cmd, "jobs")
	if err != nil {
		return err
	}
	provider, err := a.sandbox(cmd.Context(), p)
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
	env, err := a.passed(p.AgentEnv)
	if err != nil {
		return err
	}
	if showsHost(provider) {
		env = append([]string{"PATH=" + a.sandboxPath(p.Config)}, env...)
	}
	ctx, cancel := a.whileRead(cmd.Context())
	defer cancel()
	res, err := pool.Shell{
		Repo: p.repo, Sandboxes: provider, Network: network, Env: env, Limits: limits(p.Config), Mounts: mounts,
		Argv: args, Stdin: a.host.Stdin, Stdout: a.ui.out, Stderr: a.ui.err, Grace: p.StopGrace, Kill: a.hard.Done(),
		Recovered: a.sayRecovered,
	}.Run(ctx)
	if err != nil {
		return err
	}
	for _, r := range append(res.Notices, res.Refused...) {
		a.ui.note("ralph: %s", cleanLine(r))
	}
	if res.Key != "" {
		a.ui.note("ralph: %s; %s", keptWork(len(res.Commits), res.Branch, res.WIP), dropWith(res.Key))
	}
	if !res.Exit.OK() {
		return &exitError{status: res.Exit.Code, err: errors.New(strings.TrimSpace(fmt.Sprintf("the command ended with status %d %s", res.Exit.Code, res.Exit.Signal)))}
	}
	return nil
}

func newSandboxCheckCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "check", Short: "Say which sandboxes work here, what they hold back, and attack the chosen one",
		Long: "Print each sandbox provider: whether it can be used here, or what is missing and how to mend it, and what it isolates.\n" +
			"Then try, inside the chosen one, what must not be possible. Exit status 1 when an attack succeeds.",
		Example: "  ralph sandbox check\n  ralph sandbox check --sandbox docker --image ralph:app --json",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runSandboxCheck(cmd, a) },
	}
	a.addJSON(cmd)
	a.bind(cmd, sandboxKeys()...)
	return cmd
}

// providerData is one line of the table.
type providerData struct {
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

func runSandboxCheck(cmd *cobra.Command, a *app) error {
	loaded, err := a.config(cmd)
	if err != nil {
		return err
	}
	p := &parts{Config: loaded.Config, loaded: loaded, top: a.dir()}
	var list []providerData
	registry := a.sandboxRegistry(p)
	for _, name := range registry.Names() {
		provider, err := registry.Lookup(name)
		if err != nil {
			return err
		}
		c := provider.Capabilities()
		d := providerData{Name: name, Usable: true, Isolation: c.Isolation, Network: networkWord(c), Egress: c.Egress, Limits: c.Limits, Secrets: c.Secrets, Weaker: c.Weaker}
		if err := provider.Check(cmd.Context()); err != nil {
			d.Usable, d.Why = false, err.Error()
		}
		list = append(list, d)
	}
	provider, err := a.sandbox(cmd.Context(), p)
	var probes []probe
	if err == nil {
		if probes, err = attack(cmd.Context(), provider, a.sandboxPath(p.Config)); err != nil && len(probes) == 0 {
			unusable(list, provider.Name(), err)
		}
	}
	if perr := a.printCheck(list, provider, probes); perr != nil {
		return perr
	}
	if err != nil {
		return err
	}
	return verdictOf(provider, probes)
}

// unusable corrects the line of a sandbox that its provider believed in, and that does not open.
func unusable(list []providerData, name string, err error) {
	for i := range list {
		if list[i].Name == name && list[i].Usable {
			list[i].Usable = false
			list[i].Why = strings.TrimPrefix(sandboxLine(name, err), name+": ")
		}
	}
}

func (a *app) printCheck(list []providerData, provider sandboxes.Provider, probes []probe) error {
	if a.json {
		out := map[string]any{"providers": list, "chosen": "", "attacks": probes}
		if provider != nil {
			out["chosen"] = provider.Name()
		}
		return a.ui.json(out)
	}
	rows := [][]string{{"SANDBOX", "USABLE", "ISOLATION", "NETWORK", "LIMITS", "SECRETS"}}
	for _, d := range list {
		rows = append(rows, []string{d.Name, yesNo(d.Usable), string(d.Isolation), d.Network, word(d.Limits, "held", "none"),
			word(d.Secrets, "stay outside", "inside")})
	}
	a.ui.table(rows)
	for _, d := range list {
		if d.Weaker != "" {
			a.ui.printf("%s is weaker than the others that isolate: %s\n", d.Name, d.Weaker)
		}
		if d.Why != "" {
			a.ui.printf("%s: %s\n", d.Name, cleanLine(d.Why))
		}
	}
	if len(probes) == 0 {
		return nil
	}
	a.ui.printf("\nAttacks from inside %s:\n", provider.Name())
	for _, pr := range probes {
		mark := a.ui.paint(green, "held  ")
		switch {
		case pr.Known:
			mark = a.ui.paint(yellow, "WEAK  ")
		case !pr.Held:
			mark = a.ui.paint(red, "BROKEN")
		}
		a.ui.printf("  %s  %s\n", mark, pr.What)
	}
	return nil
}

func verdictOf(provider sandboxes.Provider, probes []probe) error {
	broken := 0
	for _, pr := range probes {
		if !pr.Held && !pr.Known {
			broken++
		}
	}
	if broken == 0 {
		return nil
	}
	hint := ""
	if provider.Name() == "none" {
		hint = "none isolates nothing: choose " + strongerThan("none")
	}
	return &exitError{status: exitFailed, err: fmt.Errorf("%s succeeded", plural(broken, "attack")), hint: hint}
}

// networkWord says what holds outgoing connections.
func networkWord(c sandboxes.Capabilities) string {
	if c.OwnEgress {
		return "own policy"
	}
	return word(c.Egress, "allow-list", "open")
}

func yesNo(b bool) string { return word(b, "yes", "no") }

func word(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}
