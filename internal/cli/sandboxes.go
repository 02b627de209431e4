package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/sandboxes/landlock"
	"github.com/ralph-pool/ralph/sandboxes/native"
	"github.com/ralph-pool/ralph/sandboxes/sbx"
)

// insideWord is the hidden first argument by which ralph's own program works inside a container.
const insideWord = "sandbox-inside"

// sandboxNames are the providers in the order in which people see them. A new one is one line here and one below.
func sandboxNames() []string {
	return []string{"native", "docker", "podman", "sbx", "landlock", "none"}
}

// sandboxRegistry makes the providers as the configuration wants them.
func (a *app) sandboxRegistry(p *parts) sandboxes.Registry {
	c := p.Config
	in := func(e container.Engine) sandboxes.Provider {
		config := container.Config{
			Image: imageOf(c, p.top, e.Name), Helper: container.Helper{Args: []string{insideWord}}, Base: a.host.Dir,
			User: c.ContainerUser, Runtime: c.ContainerRuntime, Files: sandboxes.Files(c.ContainerFiles), Args: c.ContainerArgs, HostEnv: a.host.Env,
			Unbounded: c.ContainerUnbounded,
		}
		if p.state != "" {
			config.StateDir = filepath.Join(p.state, "containers")
		}
		return container.New(e, config)
	}
	rules := landlock.Config{Show: append(a.agentPlaces(c), c.SandboxShow...)}
	if p.state != "" {
		rules.Scratch = filepath.Join(p.state, "landlock")
	}
	return sandboxes.NewRegistry(
		native.New(native.Config{Show: append(a.agentPlaces(c), c.SandboxShow...)}),
		in(container.Docker()), in(container.Podman()),
		sbx.New(sbxConfig(c, a.host.Env)),
		landlock.New(rules),
		sandboxes.NewNone(sandboxes.NoneConfig{Env: a.host.Env}),
	)
}

// sandbox is the provider that the configuration names; auto is native, where it works. Nothing falls back to less.
func (a *app) sandbox(ctx context.Context, p *parts) (sandboxes.Provider, error) {
	registry := a.sandboxRegistry(p)
	name := p.Sandbox
	if name == "auto" {
		name = "native"
	}
	provider, err := registry.Lookup(name)
	if err != nil {
		return nil, &exitError{status: exitUsage, err: err}
	}
	if showsHost(provider) {
		for _, path := range p.SandboxShow {
			if _, err := os.Stat(path); err != nil {
				return nil, p.wrong("sandbox-show", fmt.Errorf("%q: %w", path, err))
			}
		}
	}
	if p.Sandbox == "auto" {
		if err := provider.Check(ctx); err != nil {
			return nil, &exitError{status: exitUsage, err: fmt.Errorf("no sandbox: native: %w", err),
				hint: "choose --sandbox docker, podman or sbx, or landlock, which is weaker; --sandbox none runs agents on this host without isolation"}
		}
	}
	return provider, nil
}

// network is what isolated runs may reach.
func (a *app) network(c config.Config) (pool.Network, error) {
	n := pool.Network{User: agents.User{Env: a.host.Env, Home: a.host.getenv("HOME")}, Upstream: c.AgentUpstream}
	for _, s := range c.Allow {
		r, err := egress.ParseRule(s)
		if err != nil {
			return n, &exitError{status: exitUsage, err: fmt.Errorf("allow: %w", err)}
		}
		n.Allow = append(n.Allow, r)
	}
	return n, nil
}

// mounts reads "host=PATH,inside=PATH,readonly"; without inside the place is the same.
func (a *app) mounts(p *parts) ([]sandboxes.Mount, error) {
	var out []sandboxes.Mount
	for _, s := range p.Mounts {
		var m sandboxes.Mount
		for part := range strings.SplitSeq(s, ",") {
			name, value, _ := strings.Cut(part, "=")
			switch name {
			case "host":
				m.Host = a.expand(p.top, value)
			case "inside":
				m.Inside = value
			case "readonly":
				m.ReadOnly = true
			}
		}
		if m.Inside == "" {
			m.Inside = m.Host
		}
		if _, err := os.Stat(m.Host); err != nil {
			return nil, p.wrong("mounts", fmt.Errorf("%q: %w", s, err))
		}
		out = append(out, m)
	}
	return out, nil
}

func (a *app) expand(base, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(a.host.getenv("HOME"), rest)
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

func limits(c config.Config) sandboxes.Limits {
	return sandboxes.Limits{
		Memory: int64(c.MemoryMB) << 20, CPUs: c.CPUs, PIDs: c.PIDs, Disk: int64(c.ScratchMB) << 20,
	}
}

// showsHost reports whether a sandbox shows programs of this host, and so has its PATH.
func showsHost(p sandboxes.Provider) bool { return p.Name() == "native" || p.Name() == "landlock" }

// agentPlaces are the folders that the agent's program needs and that a native sandbox does not show by itself: where
// it was found in PATH, and what that leads to.
func (a *app) agentPlaces(c config.Config) []string {
	program := map[string]string{"claude-code": "claude", "codex": "codex"}[c.Agent]
	if c.Agent == "command" && len(c.AgentCommand) > 0 {
		program = c.AgentCommand[0]
	}
	if program == "" {
		return nil
	}
	found := program
	if !strings.Contains(program, "/") {
		if found = a.lookPath(program); found == "" {
			return nil
		}
	}
	home := a.host.getenv("HOME")
	// A folder that holds your work or your home is not shown for the sake of one program in it: the program alone is.
	show := func(dir, file string) string {
		for _, kept := range []string{home, a.host.Dir, a.dir(), a.host.getenv("XDG_STATE_HOME")} {
			if kept != "" && (kept == dir || strings.HasPrefix(kept+"/", strings.TrimSuffix(dir, "/")+"/")) {
				return file
			}
		}
		return dir
	}
	if !filepath.IsAbs(found) {
		found = filepath.Join(a.dir(), found)
	}
	places := []string{show(filepath.Dir(found), found)}
	real, err := filepath.EvalSymlinks(found)
	if err != nil {
		return places
	}
	root := show(filepath.Dir(real), real)
	// A package of npm needs its neighbours too.
	if i := strings.LastIndex(real, "/node_modules/"); i >= 0 {
		root = real[:i+len("/node_modules")]
	}
	return append(places, root)
}

func (a *app) lookPath(program string) string {
	for _, dir := range filepath.SplitList(a.host.getenv("PATH")) {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && filepath.IsAbs(dir) && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// sandboxPath is the PATH inside a native sandbox: the host's, as far as it is shown.
func (a *app) sandboxPath(c config.Config) string {
	shown := append([]string{"/usr", "/bin", "/sbin", "/opt"}, append(a.agentPlaces(c), c.SandboxShow...)...)
	var dirs []string
	for _, dir := range filepath.SplitList(a.host.getenv("PATH")) {
		if slices.ContainsFunc(shown, func(s string) bool { return dir == s || strings.HasPrefix(dir, s+"/") }) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, ":")
}
