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
	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

// Config configures a provider. Image is required; the zero value of every other field is its default.
type Config struct {
	// Image is what containers are made from. It is never pulled.
	Image string
	// Helper is a static program for Linux on the host, which is shown inside. It imports this package, and its main calls
	// reexec.Main first, as ralph's does. Default: this program, on Linux.
	Helper string
	// StateDir is an absolute host folder for small files of open sandboxes. Default: ralph/containers in the user's cache
	// folder.
	StateDir string

	// Home is the home inside, without the image's files at that place, and gone at the end; default /home/agent.
	Home string
	// Workdir is where the worktree is mounted, and commands start; default the path that it has outside.
	Workdir string

	// User is "UID:GID" inside. By default it is the owner of the worktree, so that files belong to who has the
	// worktree; under rootless podman it is the image's user, whom podman maps to you. Uid 0 must be named here.
	User string
	// UserNamespace is passed on as --userns; by default "keep-id" under rootless podman. One of another container is
	// refused.
	UserNamespace string
	// SELinux is how files shown inside are labelled: "" not at all, "disable" turns the separation off for the
	// container, "shared" and "private" relabel them on the host (podman only).
	SELinux string
	// Groups, Devices and Args are passed on: --group-add, --device, and arguments before the image as they are.
	Groups, Devices, Args []string
	// Network is passed on as --network; default "none". With another one a Spec may have no Egress. The host's own and
	// that of another container are refused. What else weakens the isolation is in the provider's Capabilities.
	Network string
	// Runtime is passed on as --runtime, such as "runsc" or "kata"; default the engine's.
	Runtime string
	// Unbounded accepts an engine that cannot enforce Limits, such as rootless podman without cgroup delegation.
	Unbounded bool
	// Keep leaves the stopped container and its disk behind, to inspect. It is found by the label ralph.run.
	Keep bool
	// HostEnv is the environment of the engine's program; nil means that of this process.
	HostEnv []string
}

// Places inside.
const (
	helperPath = "/.ralph/ralph"
	socketPath = "/.ralph/egress.sock"
	resolvPath = "/etc/resolv.conf"
	hostsPath  = "/etc/hosts"
)

// withDefaults fills in the defaults. It reads nothing that may change later.
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

// ownProgram is this program, as the helper.
func ownProgram() (string, error) {
	if runtime.GOOS != "linux" {
		return "", errors.New("containers need ralph's program for Linux: build it with " +
			"GOOS=linux CGO_ENABLED=0 go build ./cmd/ralph, and name it")
	}
	path, err := os.Executable()
	return path, errors.Join(reexec.Check(), err)
}

// unfiltered reports that Args turn the engine's filter of system calls off; then ralph's own is left out, too.
func (c Config) unfiltered() bool {
	return slices.ContainsFunc(c.Args, func(arg string) bool {
		return strings.HasSuffix(arg, "seccomp=unconfined") || arg == "--privileged" || arg == "--privileged=true"
	})
}

// problems are the mistakes in the values, whatever the machine looks like.
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
	for namespace, mode := range map[string]string{"network": c.Network, "user namespace": c.UserNamespace} {
		if err := shared(namespace, mode); err != nil {
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
