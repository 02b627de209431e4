package container

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/syntax"
)

// Config configures a provider. Image is required; all other fields have defaults.
type Config struct {
	// Image is the containers' image. It is never pulled.
	Image string
	// Helper is a static program for Linux on the host, which is shown inside. It must import this package, as
	// ralph does. Default: this program, on Linux.
	Helper string
	// StateDir is an absolute host folder for small files of open sandboxes; default ralph/containers in the user's cache.
	StateDir string

	// Home is the path of the home inside, which hides the image's files there. It is not kept. Default: /home/agent.
	Home string
	// Workdir is the path of the worktree inside, where commands start; default the host path.
	Workdir string

	// User is "UID:GID" inside. Default: the owner of the worktree, so that new files belong to that owner; under rootless
	// podman the image's user, which podman maps to the host user. Uid 0 is never chosen by default.
	User string
	// UserNamespace is the value of --userns; default "keep-id" under rootless podman. That of a container is refused.
	UserNamespace string
	// SELinux controls labels: "" changes nothing, "disable" turns SELinux separation off for the container, and "shared"
	// and "private" relabel the shown files on the host (podman only).
	SELinux string
	// Groups (--group-add), Devices (--device) and Args are passed to the engine; Args come unchanged before the image.
	Groups, Devices, Args []string
	// Network is the value of --network; default "none". With another one, a Spec must have no Egress. Those of the host and
	// of containers are refused. Capabilities names all other settings that weaken the isolation.
	Network string
	// Runtime is the value of --runtime, such as "runsc" or "kata"; default that of the engine.
	Runtime string
	// Unbounded accepts an engine that cannot enforce Limits, such as rootless podman without cgroup delegation.
	Unbounded bool
	// Keep keeps the stopped container and its disk for inspection. The label ralph.run identifies them.
	Keep bool
	// HostEnv is the environment of the engine's program; nil means that of this process.
	HostEnv []string
}

// Paths inside.
const (
	helperPath = "/.ralph/ralph"
	socketPath = "/.ralph/egress.sock"
	resolvPath = "/etc/resolv.conf"
	hostsPath  = "/etc/hosts"
)

// withDefaults returns the configuration with defaults, and an error for invalid values. It reads nothing that may change
// later.
func (c Config) withDefaults(image sandboxes.Fix) (Config, error) {
	var errs []error
	if c.StateDir == "" {
		dir, err := os.UserCacheDir()
		c.StateDir, errs = filepath.Join(dir, "ralph", "containers"), append(errs, err)
	}
	if c.Helper == "" {
		path, err := ownProgram()
		c.Helper, errs = path, append(errs, err)
	}
	c.Home, c.Network = cmp.Or(c.Home, "/home/agent"), cmp.Or(c.Network, "none")
	if c.HostEnv == nil {
		c.HostEnv = os.Environ()
	}
	return c, errors.Join(append(errs, c.problems(image)...)...)
}

// ownProgram returns the path of this program, for use as the helper.
func ownProgram() (string, error) {
	if runtime.GOOS != "linux" {
		return "", errors.New("containers need ralph's program for Linux: build it with " +
			"GOOS=linux CGO_ENABLED=0 go build ./cmd/ralph, and name it")
	}
	return os.Executable()
}

// unfiltered reports whether Args turn off the engine's system call filter; then ralph's own filter is turned off, too.
func (c Config) unfiltered() bool {
	return slices.ContainsFunc(c.Args, func(arg string) bool {
		return strings.HasSuffix(arg, "seccomp=unconfined") || arg == "--privileged" || arg == "--privileged=true"
	})
}

// problems returns the errors in the values that do not depend on the machine.
func (c Config) problems(image sandboxes.Fix) (errs []error) {
	say := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Image == "" {
		errs = append(errs, sandboxes.Fixable(errors.New("no image is named"), image))
	} else if strings.HasPrefix(c.Image, "-") {
		say("image %q starts with a dash", c.Image)
	}
	if !filepath.IsAbs(c.StateDir) {
		say("state folder %q is not an absolute path", c.StateDir)
	}
	for name, dir := range map[string]string{"home": c.Home, "working folder": c.Workdir} {
		if dir != "" && (!path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" || strings.ContainsAny(dir, ":,\n\x00")) {
			say("%s %q inside is not a clean absolute path without ':' and ','", name, dir)
		}
	}
	if syntax.Covers(c.Workdir, c.Home) {
		say("working folder %q inside would cover the home, or a folder of ralph or the system", c.Workdir)
	}
	for namespace, mode := range map[string]string{"network": c.Network, "user namespace": c.UserNamespace} {
		if err := checkNamespace(namespace, mode); err != nil {
			errs = append(errs, err)
		}
	}
	for _, word := range slices.Concat(c.Groups, c.Devices) {
		if word == "" || strings.HasPrefix(word, "-") {
			say("%q is neither a group nor a device", word)
		}
	}
	switch c.SELinux {
	case "", "disable", "shared", "private":
	default:
		say("SELinux %q is not one of disable, shared, private", c.SELinux)
	}
	if c.User != "" {
		if _, err := parseUser(c.User); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
