package sbx

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Config configures a provider. Its zero value is the default.
type Config struct {
	// Command is the program and the arguments that come before its own; default "sbx".
	Command []string
	// StateDir is an absolute host folder for small files that are shown inside while a sandbox is open. Default:
	// ralph/sbx in the user's cache folder.
	StateDir string
	// Agent is the kind of sandbox; default "shell", which starts nothing by itself.
	Agent string
	// Template is the image the microVM starts from; default that of Agent. It needs a POSIX sh, grep,
	// git, and of util-linux 2.32 or newer unshare, setsid, setpriv, prlimit, mountpoint and mount.
	Template string
	// Allow and Deny are what one sandbox may and may not reach besides the machine's policy, as sbx writes it:
	// "api.example.com:443", "*.example.com" (one label), "**.example.com", a CIDR. Deny wins.
	Allow, Deny []string
	// SecretEnv maps a service of sbx ("anthropic", "openai", …) to the variable of HostEnv with its secret.
	// Those that are set are given to sbx for the one sandbox, over standard input.
	SecretEnv map[string]string
	// Agents are the services of agents, by the agent's name, for CheckAgent and EnsureAgent.
	Agents map[string]Need
	// Keep leaves the stopped microVM behind, to inspect.
	Keep bool
	// HostEnv is the host's environment; nil means that of this process. Sbx gets only the variables that it needs to
	// work: it would put tokens that it finds there into requests, and pass the SSH agent on.
	HostEnv []string
}

// needed reports whether sbx gets a variable of the host's environment.
func needed(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	for _, prefix := range []string{"LC_", "XDG_", "DOCKER_", "SBX_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "TERM", "DISPLAY", "DBUS_SESSION_BUS_ADDRESS",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	}, name)
}

// withDefaults fills in the defaults.
func (c Config) withDefaults() (Config, error) {
	var errs []error
	if len(c.Command) == 0 {
		c.Command = []string{"sbx"}
	}
	c.Agent = cmp.Or(c.Agent, "shell")
	if c.StateDir == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			errs = append(errs, err)
		}
		c.StateDir = filepath.Join(dir, "ralph", "sbx")
	}
	if c.HostEnv == nil {
		c.HostEnv = os.Environ()
	}
	if err := shareable(c.StateDir); err != nil {
		errs = append(errs, fmt.Errorf("state folder: %w", err))
	}
	for name, words := range map[string][]string{
		"agent": {c.Agent}, "template": {c.Template}, "allow": c.Allow, "deny": c.Deny, "service": slices.Sorted(maps.Keys(c.SecretEnv)),
	} {
		for _, w := range words {
			if strings.HasPrefix(w, "-") || strings.ContainsAny(w, ", \t\n\x00") {
				errs = append(errs, fmt.Errorf("%s %q starts with a dash, or has a comma or space in it", name, w))
			}
		}
	}
	return c, errors.Join(errs...)
}

// lookup is a variable of the host.
func (c Config) lookup(name string) string {
	value := ""
	for _, e := range c.HostEnv {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// shareable refuses a path that sbx would misread: it takes the text after a colon for an option.
func shareable(path string) error {
	switch {
	case !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/":
		return fmt.Errorf("%q is not a clean absolute path", path)
	case strings.ContainsAny(path, ":\n\r\x00"):
		return fmt.Errorf("%q has a colon or line break in it, which sbx would misread", path)
	}
	return nil
}
