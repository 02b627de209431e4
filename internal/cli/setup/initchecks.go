package setup

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/scaffold"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/reach"
	"github.com/ralph-pool/ralph/internal/suite"
	"github.com/ralph-pool/ralph/internal/toolchain"
)

// assume makes the choices that --yes leaves open: the agent, and the default sandbox.
func assume(a *compose.App, c *scaffold.Choices) {
	c.Agent, c.Sandbox = cmp.Or(c.Agent, proposedAgent(a)), cmp.Or(c.Sandbox, "auto")
}

// proposedAgent returns the first agent that is installed and has a login, else the first that is installed, else "".
func proposedAgent(a *compose.App) string {
	var installed string
	for _, agent := range a.Agents().All() {
		if program := agent.Describe().Program; program == "" || a.LookPath(program) == "" {
			continue
		}
		if _, trouble := a.AgentLogin(agent); trouble == "" {
			return agent.Name()
		}
		installed = cmp.Or(installed, agent.Name())
	}
	return installed
}

// propose fills in setup, gate and what they need, except for what flags set.
func propose(ctx context.Context, a *compose.App, top string, said given, c *scaffold.Choices) error {
	proposals, err := toolchain.Propose(top)
	if err != nil {
		return err
	}
	c.Tools = toolchain.Image(proposals)
	allowed := said("allow") || said("allow-private")
	var folders []string
	asked := map[string]bool{} // several folders may use the same tool
	for _, p := range proposals {
		if !said("setup") {
			c.Setup = append(c.Setup, p.Setup...)
			if p.Note != "" && !slices.Contains(c.Notes, p.Note) {
				c.Notes = append(c.Notes, p.Note)
			}
		}
		if !said("gate") {
			c.Gate = append(c.Gate, p.Gate...)
		}
		if allowed || !compose.Isolates(c.Sandbox) || len(p.Setup) == 0 || asked[p.Tool] {
			continue
		}
		asked[p.Tool] = true
		s := p.Source(ctx, a.Host.Env)
		for _, host := range s.Hosts {
			list := &c.Allow
			if reach.PrivateHost(ctx, host) {
				list = &c.AllowPrivate
			}
			if !slices.Contains(*list, host) {
				*list = append(*list, host)
			}
		}
		for _, name := range s.Secret {
			a.UI.Warn(p.Tool + " uses an address with a password, which ralph does not copy: pass it on with agent-env: [" + name + "]")
		}
		c.Env, folders = append(c.Env, s.Env...), append(folders, s.Folders...)
	}
	if !allowed && compose.Isolates(c.Sandbox) {
		showNamed(a, proposals, slices.Concat(c.Allow, c.AllowPrivate))
	}
	c.Retestable = len(c.Gate) > 0 && toolchain.Retestable(top, suite.Lines{Gate: c.Gate, Setup: c.Setup})
	c.Show = a.HiddenTools(config.Config{Agent: c.Agent, AgentCommand: c.Command, Sandbox: c.Sandbox}, slices.Concat(c.Setup, c.Gate), folders...)
	return nil
}

// portable writes the program of a command relative to the top, if it is in the repository: in other clones the top has another path.
func portable(top string, command []string) []string {
	if len(command) == 0 || !filepath.IsAbs(command[0]) {
		return command
	}
	below, err := filepath.Rel(top, command[0])
	if err != nil || !filepath.IsLocal(below) {
		return command
	}
	return append([]string{"./" + filepath.ToSlash(below)}, command[1:]...)
}

// programAt returns the program of a command in the configuration, whose paths are relative to the top. It leaves out one
// below the home.
func programAt(top string, command []string) string {
	if len(command) == 0 || strings.HasPrefix(command[0], "~/") {
		return ""
	}
	if p := command[0]; !strings.Contains(p, "/") || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(top, command[0])
}

// showNamed warns of hosts that only files of the project name. Ralph proposes none of them and looks none up: the authors of
// a project must not decide where runs may send data.
func showNamed(a *compose.App, proposals []toolchain.Proposal, allowed []string) {
	const most = 10
	var named []string
	for _, p := range proposals {
		for _, n := range p.Named {
			if len(p.Setup) > 0 && !slices.Contains(allowed, n.Host) && len(named) < most {
				allowed = append(allowed, n.Host)
				named = append(named, n.Host+" ("+n.File+")")
			}
		}
	}
	if len(named) > 0 {
		a.UI.Warn("the repository names hosts that runs may not reach: " + strings.Join(named, ", ") +
			"; add those that you trust to allow or allow-private in config.yaml")
	}
}

// printChecks prints the proposed values.
func printChecks(a *compose.App, c scaffold.Choices) {
	title := "\nCheck these values in config.yaml:\n"
	var retest, command []string
	if len(c.Command) > 0 {
		command = []string{strings.Join(c.Command, " ")}
	}
	if c.Retestable {
		retest = []string{"report"}
	}
	for _, row := range []struct {
		key  string
		list []string
	}{
		{"agent", []string{c.Agent}}, {"agent-command", command}, {"sandbox", []string{c.Sandbox}},
		{"setup", c.Setup}, {"", c.Notes}, {"gate", c.Gate}, {"retest", retest}, {"allow", c.Allow}, {"allow-private", c.AllowPrivate}, {"agent-env", c.Env},
		{"sandbox-show", c.Show},
	} {
		if len(row.list) > 0 {
			line := fmt.Sprintf("  %-13s  %s", row.key, screen.CleanLine(strings.Join(row.list, "; ")))
			a.UI.Printf("%s%s\n", title, a.UI.Wrapped(line, 17))
			title = ""
		}
	}
}

// otherTools returns the agents besides the first. A container's image needs the programs of all of them, and each needs its
// login.
func otherTools(a *compose.App, c scaffold.Choices) (list []scaffold.Other, err error) {
	for _, of := range []struct {
		key   string
		names []string
	}{{"fallback", c.Fallback}, {"attempt", c.Attempts}, {"review", strings.Fields(c.Review)}} {
		for _, text := range of.names {
			choice, err := agents.ParseChoice(text)
			if err != nil {
				return nil, exit.Usagef("--%s: %w", of.key, err)
			}
			agent, err := a.Agents().Lookup(choice.Agent)
			if err != nil {
				return nil, exit.Usagef("--%s: %w", of.key, err)
			}
			if agent.Describe().Program == "" && choice.Agent != c.Agent {
				return nil, exit.Usagef("--%s: %s needs its program, which no flag can name: add it to config.yaml after init",
					of.key, choice.Agent)
			}
			known := slices.ContainsFunc(list, func(o scaffold.Other) bool { return o.Name == choice.Agent })
			if choice.Agent != c.Agent && !known {
				list = append(list, scaffold.Other{Name: choice.Agent, About: agent.Describe()})
			}
		}
	}
	return list, nil
}
