package compose

import (
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

// sandboxNames are the providers in the order in which people see them. A new one is one line here and one below.
func sandboxNames() []string {
	return []string{"native", "docker", "podman", "sbx", "landlock", "none"}
}

// StrongerThan lists, for people, the sandboxes that isolate most, without the one that is chosen.
func StrongerThan(chosen string) string {
	names := slices.DeleteFunc([]string{"native", "docker", "podman", "sbx"}, func(name string) bool { return name == chosen })
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// SandboxRegistry makes the providers as the configuration wants them.
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
	deny := append(a.Trackers.SecretVars(), config.SecretVariables()...)
	if c.Traces != "off" {
		deny = append(deny, trace.HeaderVariables()...)
	}
	rules := landlock.Config{Show: append(a.agentPlaces(c), c.SandboxShow...)}
	if p.State != "" {
		rules.Scratch = filepath.Join(p.State, "landlock")
	}
	return sandboxes.NewRegistry(
		native.New(native.Config{Show: append(a.agentPlaces(c), c.SandboxShow...)}),
		in(container.Docker()), in(container.Podman()),
		sbx.New(sbxConfig(c, a.About(c.Agent), a.Host.Env)),
		landlock.New(rules),
		sandboxes.NewNone(sandboxes.NoneConfig{Env: a.Host.Env, Deny: deny}),
	)
}

// SandboxName is the provider that the configuration names; auto is native.
func (p *Parts) SandboxName() string {
	if p.Sandbox == "auto" {
		return "native"
	}
	return p.Sandbox
}

// Sandbox is the provider that the configuration names; auto is native, where it works. Nothing falls back to less.
func (a *App) Sandbox(ctx context.Context, p *Parts) (sandboxes.Provider, error) {
	registry := a.SandboxRegistry(p)
	provider, err := registry.Lookup(p.SandboxName())
	if err != nil {
		return nil, &exit.Error{Status: exit.Usage, Err: err}
	}
	var gone []string
	if from := p.Loaded.Origin("sandbox-show"); ShowsHost(provider) {
		for _, path := range p.SandboxShow {
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !byHand(from) { // a repository's file is for all machines
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

// Mounts reads "host=PATH,inside=PATH,readonly"; without inside the place is the same.
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
		if m.Inside == "" {
			m.Inside = m.Host
		}
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

// Expand makes a path of the configuration absolute: ~/ is the home, and others are below base.
func (a *App) Expand(base, path string) string {
	return keys.Resolve(path, base, a.Host.Getenv("HOME"))
}

// Limits are what a sandbox may use.
func Limits(c config.Config) sandboxes.Limits {
	return sandboxes.Limits{
		Memory: int64(c.MemoryMB) << 20, CPUs: c.CPUs, PIDs: c.PIDs, Disk: int64(c.ScratchMB) << 20,
	}
}

// ShowsHost reports whether a sandbox shows programs of this host, and so has its PATH.
func ShowsHost(p sandboxes.Provider) bool { return p.Name() == "native" || p.Name() == "landlock" }

// agentPlaces are the folders that the programs of agents and reviewer need and that a native sandbox does not show by itself.
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

// Unmet refuses a request that the sandbox has no means for. Left out in silence, a limit or an allow-list would be believed
// to hold. What a file says for its own sandbox is no request where somebody has chosen another one by hand: a warning names
// it.
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
				missing = "holds no limits"
			case key == "scratch-mb" && name == "sbx":
				missing = "holds no limit of scratch space"
			}
		case "mounts":
			if !isolated {
				missing = "shows all of this host"
			}
		case "allow", "allow-private":
			if !can.Egress && !can.OwnEgress { // also containers with a network of their own
				missing = "lets every connection through"
			}
		case "sandbox-show":
			if isolated && !ShowsHost(provider) {
				missing = "shows folders of this host by --mount alone"
			}
		case "image":
			if !container && name != "sbx" {
				missing = "has no images"
			}
		default:
			if strings.HasPrefix(key, "container-") && !container {
				missing = "has no containers"
			}
		}
		switch {
		case missing == "" || !p.Loaded.Asked(key):
		case byHand(p.Loaded.Origin("sandbox")) && !byHand(p.Loaded.Origin(key)) && slices.Contains([]string{"allow", "allow-private", "sandbox-show"}, key):
			warnings = append(warnings, fmt.Sprintf("%s does not count: sandbox %s %s", p.Loaded.Origin(key).Name(key), name, missing))
		default:
			return nil, p.Wrong(key, fmt.Errorf("sandbox %s %s; leave it out, or choose another with --sandbox", name, missing))
		}
	}
	return warnings, nil
}

func byHand(o config.Origin) bool {
	return o.Source == config.FromFlag || o.Source == config.FromEnvironment
}

// Engines are the programs that build images and run containers.
func Engines() []string { return []string{"docker", "podman"} }

// imageOf is the image that the configuration means for an engine: the one named, or the one that `ralph image build` makes.
func imageOf(c config.Config, top, engine string) string {
	if c.Image != "" || top == "" {
		return c.Image
	}
	return image.Usual(top, engine)
}

// Isolates reports whether the sandbox of that name protects the host.
func Isolates(sandbox string) bool { return sandbox != "none" }
