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
	// Command is the program and its leading arguments; default "sbx".
	Command []string
	// StateDir is an absolute host folder for small files that are shown inside while a sandbox is open. Default: ralph/sbx
	// in the user's cache folder.
	StateDir string
	// Agent is the kind of sandbox; default "shell", which starts no program by itself.
	Agent string
	// Template is the image of the microVM; default that of Agent. It needs a POSIX sh, grep, git, and from util-linux 2.32
	// or newer unshare, setsid, setpriv, prlimit, mountpoint and mount.
	Template string
	// Allow and Deny are network rules of one sandbox, in addition to the machine's policy, in the syntax of sbx:
	// "api.example.com:443", "*.example.com" (one label), "**.example.com", a CIDR. Deny takes precedence.
	Allow, Deny []string
	// SecretEnv maps a service of sbx ("anthropic", "openai", …) to the variable of HostEnv with its secret. Secrets of
	// variables that are set are passed to sbx on standard input, for this sandbox only.
	SecretEnv map[string]string
	// Agents maps an agent's name to its service, for CheckAgent and EnsureAgent.
	Agents map[string]Need
	// Keep stops the microVM instead of removing it, for inspection.
	Keep bool
	// HostEnv is the host's environment; nil means that of this process. Sbx gets only the variables that it needs: it
	// would insert tokens that it finds there into requests, and forward the SSH agent.
	HostEnv []string
}

// isEngineVariable reports whether sbx gets a variable of the host's environment.
func isEngineVariable(entry string) bool {
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

// withDefaults returns the configuration with defaults, and an error for invalid values.
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
				errs = append(errs, fmt.Errorf("%s %q starts with a dash, or contains a comma or space", name, w))
			}
		}
	}
	return c, errors.Join(errs...)
}

// lookup returns a variable of the host's environment, or "".
func (c Config) lookup(name string) string {
	value := ""
	for _, e := range c.HostEnv {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// shareable returns an error for a path that sbx would misread: it takes text after a colon for an option.
func shareable(path string) error {
	switch {
	case !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/":
		return fmt.Errorf("%q is not a clean absolute path", path)
	case strings.ContainsAny(path, ":\n\r\x00"):
		return fmt.Errorf("%q contains a colon or line break, which sbx would misread", path)
	}
	return nil
}
