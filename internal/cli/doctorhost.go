package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/sbx"
)

// versionTime is how long a CLI may take to tell its version.
const versionTime = 20 * time.Second

// agent looks whether the agent's program is there, and whether it seems to be logged in.
func (d *doctor) agent(ctx context.Context, p *parts) {
	provider, err := d.app.sandbox(ctx, p)
	if err != nil {
		provider = sandboxes.NewNone(sandboxes.NoneConfig{Env: d.app.host.Env}) // its own line says what is wrong
	}
	agent, options, _, err := d.app.agent(p.Config, provider)
	if err == nil {
		err = agent.Check(options)
	}
	if err != nil {
		d.fail("agent", err.Error(), "")
		return
	}
	inv, err := agent.Invocation(agents.Request{Prompt: "-", Options: options})
	if err != nil {
		d.fail("agent", err.Error(), "")
		return
	}
	if agent.Name() == "command" {
		program := options.Command[0]
		if !strings.Contains(program, "/") && d.app.lookPath(program) == "" {
			d.fail("agent", "command: "+program+" is not in PATH", "install it, or name another: --agent-command")
			return
		}
		if _, err := os.Stat(d.app.expand(p.top, program)); err != nil && strings.Contains(program, "/") {
			d.fail("agent", "command: "+err.Error(), "commit it, or name it with its whole path: --agent-command")
			return
		}
		d.ok("agent", "command "+strings.Join(options.Command, " "))
		return
	}
	out := proc.NewTail(1 << 10)
	limit, cancel := context.WithTimeoutCause(ctx, versionTime, errors.New("no answer in time"))
	defer cancel()
	exit, err := proc.Run(limit, proc.Spec{
		Argv: []string{inv.Argv[0], "--version"}, Dir: p.top, Env: d.app.host.Env, Stdout: out, Stderr: out,
	})
	switch {
	case err != nil:
		d.fail("agent", fmt.Sprintf("%s: %v", agent.Name(), err), "install it, choose another with --agent, or name a program: --agent-command")
	case exit.Code != 0:
		d.fail("agent", fmt.Sprintf("%s --version: exit status %d: %s", inv.Argv[0], exit.Code, out), "")
	default:
		d.ok("agent", fmt.Sprintf("%s: %s", agent.Name(), strings.TrimSpace(out.String())))
		d.login(agent.Name())
	}
	if !options.SkipPermissions && options.PermissionMode == "" {
		d.warn("agent", "it will ask before it acts, and nobody answers", "--skip-permissions, or --permission-mode MODE")
	}
}

// login looks for what the CLIs log in with. Only a call could tell whether it is good.
func (d *doctor) login(agent string) {
	home := d.app.host.getenv("HOME")
	vars, file, mend := []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}, ".claude/.credentials.json", "run `claude` once and log in, or set ANTHROPIC_API_KEY"
	if agent == "codex" {
		vars, file, mend = []string{"OPENAI_API_KEY", "CODEX_API_KEY"}, ".codex/auth.json", "run `codex login`, or set OPENAI_API_KEY"
	}
	for _, v := range vars {
		if d.app.host.getenv(v) != "" {
			d.ok("login", agent+": "+v+" is set")
			return
		}
	}
	if _, err := os.Stat(filepath.Join(home, file)); err == nil {
		d.ok("login", agent+": ~/"+file)
		return
	}
	d.warn("login", agent+": neither a key nor a login was found", mend)
}

func (d *doctor) sandboxes(ctx context.Context, p *parts) {
	reg := d.app.sandboxRegistry(p)
	chosenName := p.Sandbox
	if chosenName == "auto" {
		chosenName = "native"
	}
	provider, err := reg.Lookup(chosenName)
	if err == nil {
		err = d.app.trial(ctx, p, provider)
	}
	switch {
	case err != nil:
		d.fail("sandbox", sandboxLine(chosenName, err), "as it says; or choose another with --sandbox: `ralph sandbox check` lists them")
	case !provider.Capabilities().Isolated():
		d.warn("sandbox", chosenName+": works, and isolates nothing", "--sandbox "+strongerThan(chosenName))
	case provider.Capabilities().Weaker != "":
		d.warn("sandbox", chosenName+": works, and is weaker than others: "+provider.Capabilities().Weaker, "--sandbox "+strongerThan(chosenName)+", where one works")
	default:
		d.ok("sandbox", chosenName+": works; `ralph sandbox check` attacks it")
		if s, ok := provider.(*sbx.Provider); ok {
			d.sbxLogin(ctx, s, p.Agent)
		}
	}
}

// strongerThan lists, for people, the sandboxes that isolate most, without the one that is chosen.
func strongerThan(chosen string) string {
	names := slices.DeleteFunc([]string{"native", "docker", "podman", "sbx"}, func(name string) bool { return name == chosen })
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// disk looks whether a sweep would start anything. Twice the floor is little to work with.
func (d *doctor) disk(p *parts) {
	room, err := disk.RoomAt(p.state)
	if err != nil {
		d.warn("disk", err.Error(), "")
		return
	}
	guard := disk.Guard{Place: p.state, Floor: minFree(p.Config)}
	twice := disk.Guard{Place: p.state, Floor: 2 * minFree(p.Config)}
	text := fmt.Sprintf("%s free for worktrees in %s, %d MiB of them kept free (min-free-mb)", disk.Size(room.Bytes), p.state, p.MinFreeMB)
	const mend = "free some, choose another place: --state-dir, or less to be kept free: --min-free-mb"
	switch {
	case guard.Short() != nil:
		d.fail("disk", guard.Short().Error(), mend)
	case twice.Short() != nil:
		d.warn("disk", text, mend)
	case p.MinFreeMB == 0:
		d.warn("disk", disk.Size(room.Bytes)+" free for worktrees in "+p.state+", and nothing keeps a run from filling it (min-free-mb is 0)", "--min-free-mb 1024")
	default:
		d.ok("disk", text)
	}
}
