package work

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree/layer"
)

// preflightTime is the time limit for opening a sandbox and running a short command in it. A slow engine takes some seconds.
const preflightTime = 2 * time.Minute

// Preflight opens a sandbox as every run will, over an empty folder beside the worktrees, and runs git in it. That finds a
// wrong image, user, runtime, limit or mount before any sweep. For a provider with an egress policy of its own, Check is
// enough, because each sandbox starts a machine. has reports whether the sandbox also has the program; nil: unknown.
func Preflight(ctx context.Context, a *compose.App, p *compose.Parts, provider sandboxes.Provider, program string) (has *bool, err error) {
	if _, err := p.Unmet(provider); err != nil {
		return nil, err
	}
	if err := provider.Check(ctx); err != nil {
		return nil, err
	}
	c := provider.Capabilities()
	if !c.Isolated() || c.OwnEgress {
		return nil, nil //nolint:nilnil // unknown
	}
	mounts, err := a.Mounts(p)
	if err != nil {
		return nil, err
	}
	parent := filepath.Join(p.State, "preflight")
	defer reapPreflights(ctx, parent, provider) // runs last: the engine may still be busy with a killed check's sandbox
	run := fmt.Sprintf("preflight-%d-%s-%s", os.Getpid(), provider.Name(), strings.ToLower(rand.Text()[:12]))
	dir := filepath.Join(parent, run)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.Remove(dir)) }()
	spec := sandboxes.Spec{Run: run, Worktree: dir, Mounts: mounts, Limits: compose.Limits(p.Config)}
	if compose.ShowsHost(provider) {
		spec.Env = a.SandboxEnv(p.Config)
	}
	limit, cancel := context.WithTimeoutCause(ctx, preflightTime, fmt.Errorf("it did not open within %s", preflightTime))
	defer cancel()
	box, err := provider.Open(limit, spec)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, box.Close(context.WithoutCancel(ctx))) }()
	out := proc.NewTail(1 << 10)
	ended, err := box.Exec(limit, sandboxes.Command{Argv: []string{"git", "--version"}, Stdout: out, Stderr: out})
	switch {
	case err != nil:
		return nil, fmt.Errorf("git does not run inside: %w", err)
	case !ended.OK():
		return nil, fmt.Errorf("git does not run inside (exit status %d %s): %s", ended.Code, ended.Signal, strings.TrimSpace(out.String()))
	}
	return hasProgram(limit, box, program), nil
}

// hasProgram looks for a program in PATH or at an absolute path. It skips a relative path: there is no worktree yet.
func hasProgram(ctx context.Context, box sandboxes.Sandbox, program string) *bool {
	if program == "" || strings.Contains(program, "/") && !filepath.IsAbs(program) {
		return nil
	}
	ended, err := box.Exec(ctx, sandboxes.Command{Argv: []string{"sh", "-c", `command -v "$1" >/dev/null`, "sh", program}})
	if err != nil {
		return nil
	}
	return new(ended.OK())
}

// checkSandbox checks the sandbox before a sweep. For a sandbox without an external program, one success counts for this
// program until the machine restarts: opening a sandbox takes a tenth of the time of a short sweep.
func checkSandbox(ctx context.Context, p *compose.Parts, provider sandboxes.Provider) error {
	file, now := checkedFile(p, provider), ""
	if provider.Capabilities().Isolation == sandboxes.Namespaces {
		now = thisProgram()
	}
	if said, err := os.ReadFile(file); err == nil && now != "" && string(said) == now {
		return nil
	}
	err := provider.Check(ctx)
	if err == nil && now != "" {
		if failed := os.WriteFile(file, []byte(now), 0o600); failed != nil {
			p.Log.Debug("the check of the sandbox is not remembered", "error", failed)
		}
	}
	return err
}

func checkedFile(p *compose.Parts, provider sandboxes.Provider) string {
	return filepath.Join(p.State, "checked-"+provider.Name())
}

// checkAgain makes the next sweep check the sandbox again if the sandbox of a run did not open.
func checkAgain(p *compose.Parts, provider sandboxes.Provider, runs []journal.Record) {
	if slices.ContainsFunc(runs, func(r journal.Record) bool { return r.Facts.Open != nil }) {
		_ = os.Remove(checkedFile(p, provider)) // usually there is none
	}
}

// thisProgram identifies the machine's boot, the user and the program, or returns "".
func thisProgram() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %d %s %d %d", strings.TrimSpace(layer.Boot()), os.Getuid(), path, info.Size(), info.ModTime().UnixNano())
}

// reapPreflights ends the sandboxes of preflight checks whose ralph process was killed. The next check tries again what fails
// now.
func reapPreflights(ctx context.Context, dir string, provider sandboxes.Provider) {
	left, _ := os.ReadDir(dir) // usually empty
	for _, folder := range left {
		var pid int
		_, err := fmt.Sscanf(folder.Name(), "preflight-%d-", &pid)
		if err != nil || !strings.Contains(folder.Name(), "-"+provider.Name()+"-") {
			continue
		}
		if _, err := proc.Started(pid); err == nil { // it may still run
			continue
		}
		if reaper, ok := sandboxes.As[sandboxes.Reaper](provider); ok && reaper.Reap(ctx, folder.Name()) != nil {
			continue
		}
		_ = os.Remove(filepath.Join(dir, folder.Name()))
	}
}

// NoAgent returns the error of missing programs with which every run would end. It returns nil if the reviewer's program and one
// agent's program exist.
func NoAgent(a *compose.App, p *compose.Parts, c run.Config) (first error) {
	if c.Review.Agent != nil {
		if err := noProgram(a, p, c, agents.Link{Agent: c.Review.Agent, Options: c.Review.Options}); err != nil {
			return err
		}
	}
	for _, l := range c.Agents() {
		err := noProgram(a, p, c, l)
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

// noProgram returns an error if the program cannot exist where the agent runs. It returns nil if the program is on the host,
// or might be in the image, in a mount, in a PATH of the agent's environment, or installed by before or setup. Setup cannot
// add to the PATH of a sandbox that shows the host's folders.
func noProgram(a *compose.App, p *compose.Parts, c run.Config, l agents.Link) error {
	program := l.Agent.Describe().Program
	if program == "" && len(l.Options.Command) > 0 {
		program = l.Options.Command[0]
	}
	ofHost := !c.Sandboxes.Capabilities().Isolated() || compose.ShowsHost(c.Sandboxes)
	// A file's path is relative to the top, a flag's to the working directory, which may reach the checkout through a link.
	inCheckout := strings.HasPrefix(program, p.Top+"/") || strings.HasPrefix(program, a.Dir()+"/")
	if !ofHost && len(c.Mounts) == 0 && inCheckout {
		return &exit.Error{
			Status: exit.Parked,
			Err: fmt.Errorf("agent %s is unavailable: sandbox %s does not show %s; "+
				"mount it, or start the copy in the worktree with sh -c 'exec ./PATH'",
				l.Agent.Name(), c.Sandboxes.Name(), program),
		}
	}
	if found := a.LookPath(program); l.Agent.Describe().Program == "" && found != "" {
		if err := hiddenProgram(a, p, c.Sandboxes, l.Agent.Name(), found, l.Options.Command[1:]); err != nil {
			return err
		}
	}
	path := slices.ContainsFunc(l.Options.Env, func(v string) bool { return strings.HasPrefix(v, "PATH=") })
	installs := len(c.Before) > 0 || len(c.Setup) > 0 && !compose.ShowsHost(c.Sandboxes)
	if !ofHost || path || installs || program == "" ||
		strings.Contains(program, "/") && len(c.Mounts) > 0 || a.LookPath(program) != "" {
		return nil
	}
	return &exit.Error{
		Status: exit.Parked,
		Err:    fmt.Errorf("agent %s is unavailable: %s; %s", l.Agent.Name(), agents.NotFound(program), hint.Agent),
	}
}

// NoSandbox returns the error of a sweep in which no run can open a sandbox.
func NoSandbox(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &exit.Error{
		Status: exit.Parked,
		Err:    errors.New("sandbox " + hint.SandboxLine(name, err)),
		Hint:   "`ralph doctor --sandbox " + name + "` checks it",
	}
}
