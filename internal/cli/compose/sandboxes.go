package compose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/trace"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
	"github.com/ralph-pool/ralph/sandboxes/copying"
	"github.com/ralph-pool/ralph/sandboxes/image"
	"github.com/ralph-pool/ralph/sandboxes/landlock"
	"github.com/ralph-pool/ralph/sandboxes/native"
	"github.com/ralph-pool/ralph/sandboxes/sbx"
)

// sandboxNames lists the providers in the order of display. A new provider needs one line here and one in SandboxRegistry.
func sandboxNames() []string {
	return []string{"native", "docker", "podman", "sbx", "landlock", "none"}
}

// StrongerThan lists, as text for people, the sandboxes with full isolation, without the chosen one.
func StrongerThan(chosen string) string {
	names := slices.DeleteFunc([]string{"native", "docker", "podman", "sbx"}, func(name string) bool { return name == chosen })
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// SandboxRegistry returns all providers, configured.
func (a *App) SandboxRegistry(p *Parts) sandboxes.Registry {
	c := p.Config
	in := func(e container.Engine) sandboxes.Provider {
		settings := container.Config{
			Image: imageOf(c, p.Top, e.Name),
			User:  c.ContainerUser, Runtime: c.ContainerRuntime, Args: c.ContainerArgs, HostEnv: a.Host.Env,
			Unbounded: c.ContainerUnbounded, Network: c.ContainerNetwork, UserNamespace: c.ContainerUserns, SELinux: c.ContainerSELinux,
			Groups: c.ContainerGroups, Devices: c.ContainerDevices, Workdir: c.ContainerWorkdir, Keep: c.ContainerKeep,
		}
		if p.State != "" {
			settings.StateDir = filepath.Join(p.State, "containers")
		}
		if c.ContainerFiles == string(sandboxes.Copy) {
			return copying.Wrap(container.New(e, settings))
		}
		return container.New(e, settings)
	}
	show := append(a.agentPlaces(c), c.SandboxShow...)
	deny := append(a.Trackers.SecretVars(), config.SecretVariables()...)
	if c.Traces != "off" {
		deny = append(deny, trace.HeaderVariables()...)
	}
	rules := landlock.Config{Show: show}
	if p.State != "" {
		rules.Scratch = filepath.Join(p.State, "landlock")
	}
	return sandboxes.NewRegistry(
		native.New(native.Config{Show: show}),
		in(container.Docker()), in(container.Podman()),
		sbx.New(sbxConfig(c, a.About(c.Agent), a.Host.Env)),
		landlock.New(rules),
		sandboxes.NewNone(sandboxes.NoneConfig{Env: a.Host.Env, Deny: deny}),
	)
}

// SandboxName returns the configured provider's name; auto means native.
func (p *Parts) SandboxName() string {
	if p.Sandbox == "auto" {
		return "native"
	}
	return p.Sandbox
}

// Sandbox returns the configured provider. auto means native, and fails where native does not work: nothing falls back to a
// weaker sandbox.
func (a *App) Sandbox(ctx context.Context, p *Parts) (sandboxes.Provider, error) {
	registry := a.SandboxRegistry(p)
	provider, err := registry.Lookup(p.SandboxName())
	if err != nil {
		return nil, &exit.Error{Status: exit.Usage, Err: err}
	}
	var gone []string
	if from := p.Loaded.Origin("sandbox-show"); ShowsHost(provider) {
		for _, path := range p.SandboxShow {
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !byHand(from) { // a repository's file is written for all machines
				gone = append(gone, fmt.Sprintf("%s: %s is not on this machine", from.Name("sandbox-show"), path))
			} else if err != nil {
				return nil, p.Wrong("sandbox-show", fmt.Errorf("%q: %w", path, err))
			}
			if p.ShowsKeys(path) {
				return nil, p.Wrong("sandbox-show", fmt.Errorf("%q would show your keys in %s to agents", path, DotEnvFile))
			}
		}
	}
	warnings, err := p.Unmet(provider)
	if err != nil {
		return nil, err
	}
	if !p.warned {
		for _, w := range append(gone, warnings...) {
			a.UI.Warn(w)
		}
		p.warned = true
	}
	if p.Sandbox == "auto" {
		if err := provider.Check(ctx); err != nil {
			return nil, &exit.Error{Status: exit.Usage, Err: fmt.Errorf("no sandbox: native: %w", err),
				Hint: "choose --sandbox docker, podman or sbx, or landlock, which is weaker; " +
					"--sandbox none runs agents on this host without isolation"}
		}
	}
	return provider, nil
}

// Mounts parses the configured "host=PATH,inside=PATH,readonly". Without inside the sandbox shows the path of the host.
func (a *App) Mounts(p *Parts) ([]sandboxes.Mount, error) {
	var out []sandboxes.Mount
	for _, s := range p.Mounts {
		var m sandboxes.Mount
		for part := range strings.SplitSeq(s, ",") {
			name, value, _ := strings.Cut(part, "=")
			switch name {
			case "host":
				m.Host = a.Expand(p.Top, value)
			case "inside":
				m.Inside = value
			case "readonly":
				m.ReadOnly = true
			}
		}
		m.Inside = cmp.Or(m.Inside, m.Host)
		if err := p.Loaded.Inside("mounts", m.Host); err != nil {
			return nil, err
		}
		if _, err := os.Stat(m.Host); err != nil {
			return nil, p.Wrong("mounts", fmt.Errorf("%q: %w", s, err))
		}
		if p.ShowsKeys(m.Host) {
			return nil, p.Wrong("mounts", fmt.Errorf("%q would show your keys in %s to agents", s, DotEnvFile))
		}
		out = append(out, m)
	}
	return out, nil
}

// Expand makes a path of the configuration absolute: ~/ is the home, other relative paths are below base.
func (a *App) Expand(base, path string) string {
	return keys.Resolve(path, base, a.Host.Getenv("HOME"))
}

// Limits returns the resource limits of a sandbox.
func Limits(c config.Config) sandboxes.Limits {
	return sandboxes.Limits{
		Memory: int64(c.MemoryMB) << 20, CPUs: c.CPUs, PIDs: c.PIDs, Disk: int64(c.ScratchMB) << 20,
	}
}

// ShowsHost reports whether the sandbox shows programs of the host, and so uses the host's PATH.
func ShowsHost(p sandboxes.Provider) bool { return p.Name() == "native" || p.Name() == "landlock" }

// agentPlaces returns the folders that the programs of agents and reviewer need; a native sandbox must show them explicitly.
func (a *App) agentPlaces(c config.Config) (places []string) {
	for _, text := range append([]string{c.Agent}, slices.Concat(c.Fallback, c.Attempts)...) {
		choice, _ := agents.ParseChoice(text) // the configuration has been checked
		places = append(places, a.programPlaces(choice.Agent, c)...)
	}
	if reviewer, there := asReviewer(c); there {
		places = append(places, a.programPlaces(reviewer.Agent, reviewer)...)
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// Unmet refuses settings that the sandbox cannot enforce: a limit or an allow-list that is silently dropped would be believed to
// hold. If a flag or variable chose the sandbox, settings that a file wrote for another one only give a warning.
func (p *Parts) Unmet(provider sandboxes.Provider) (warnings []string, err error) {
	if p.looks {
		return nil, nil
	}
	name, can, container := provider.Name(), provider.Capabilities(), slices.Contains(Engines(), provider.Name())
	isolated := can.Isolated()
	for _, key := range keys.AllNames() {
		missing := ""
		switch key {
		case "memory-mb", "cpus", "pids", "scratch-mb":
			switch {
			case !isolated:
				missing = "cannot limit resources"
			case key == "scratch-mb" && name == "sbx":
				missing = "cannot limit scratch space"
			}
		case "mounts":
			if !isolated {
				missing = "shows the whole host"
			}
		case "allow", "allow-private":
			if !can.Egress && !can.OwnEgress { // true for containers with a network of their own, too
				missing = "does not filter connections"
			}
		case "sandbox-show":
			if isolated && !ShowsHost(provider) {
				missing = "shows folders of the host only with --mount"
			}
		case "image":
			if !container && name != "sbx" {
				missing = "uses no images"
			}
		default:
			if strings.HasPrefix(key, "container-") && !container {
				missing = "uses no containers"
			}
		}
		switch {
		case missing == "" || !p.Loaded.Asked(key):
		case byHand(p.Loaded.Origin("sandbox")) && !byHand(p.Loaded.Origin(key)) && slices.Contains([]string{"allow", "allow-private", "sandbox-show"}, key):
			warnings = append(warnings, fmt.Sprintf("%s is ignored: sandbox %s %s", p.Loaded.Origin(key).Name(key), name, missing))
		default:
			return nil, p.Wrong(key, fmt.Errorf("sandbox %s %s; remove the setting, or choose another sandbox with --sandbox", name, missing))
		}
	}
	return warnings, nil
}

func byHand(o config.Origin) bool {
	return o.Source == config.FromFlag || o.Source == config.FromEnvironment
}

// Engines lists the container engines.
func Engines() []string { return []string{"docker", "podman"} }

// imageOf returns the image for an engine: the configured one, or the one that `ralph image build` makes.
func imageOf(c config.Config, top, engine string) string {
	if c.Image != "" || top == "" {
		return c.Image
	}
	return image.Usual(top, engine)
}

// Isolates reports whether the named sandbox protects the host.
func Isolates(sandbox string) bool { return sandbox != "none" }
