package container

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Config configures a provider. Image is needed; the zero value of all else is the default.
type Config struct {
	// Image is what containers are made from. It is never pulled.
	Image string
	// Helper is ralph's own program for Linux, which is shown inside.
	Helper Helper
	// StateDir is an absolute host folder for small files that are shown inside while a sandbox is open. Default:
	// ralph/containers in the user's cache folder.
	StateDir string

	// Files says how the worktree gets in: sandboxes.Bind, the default, mounts it. sandboxes.Copy is for an engine that
	// does not see this host's files, such as one on another machine: it copies in, before each command, what the host
	// has changed, and out, after it, what the command has.
	Files sandboxes.Files

	// Env is the environment ("K=V") of every command, over the image's. A Spec's wins.
	Env []string
	// Mounts are shown inside besides those of the Spec. A Host path may start with "~/", and a relative one starts
	// from Base.
	Mounts []sandboxes.Mount
	// Base is the absolute folder that relative Mounts start from; default the process's working folder.
	Base string
	// Home is the home inside, empty at the start and gone at the end; default /home/agent.
	Home string
	// Workdir is the folder inside that commands start in; default the worktree, which has the same path as outside.
	Workdir string

	// User is "UID:GID" inside. By default it is the owner of the worktree, so that files belong to who has the
	// worktree; under rootless podman it is the image's user, whom podman maps to you. Uid 0 has to be named here.
	User string
	// UserNamespace is passed on as --userns; by default "keep-id" under rootless podman.
	UserNamespace string
	// SELinux is how files shown inside are labelled: "" not at all, "disable" turns the separation off for the
	// container, "shared" and "private" relabel them on the host (podman only).
	SELinux string
	// Groups, Devices and Args are passed on: --group-add, --device, and arguments before the image as they are.
	Groups, Devices, Args []string
	// Network is passed on as --network; default "none". With another one a Spec may have no Egress.
	Network string
	// Runtime is passed on as --runtime, such as "runsc" or "kata"; default the engine's.
	Runtime string
	// WritableRoot makes the container's root writable: slower to bound, and needed by images that write to it.
	WritableRoot bool
	// Unbounded accepts an engine that cannot enforce Limits, such as rootless podman without cgroup delegation.
	Unbounded bool
	// Keep leaves the stopped container behind, to look into. It is found by the label ralph.run.
	Keep bool
	// Owner marks containers with the label ralph.owner; default the host's name.
	Owner string

	// HostEnv is the environment of the engine's program; nil means that of this process.
	HostEnv []string
}

// Helper is how ralph's own binary is called inside: Path Args… and then what [Inside] understands.
type Helper struct {
	// Path is a static Linux program on the host; default this program, on Linux.
	Path string
	// Args are the hidden words that lead to [Inside].
	Args []string
}

// Places inside.
const (
	helperPath = "/.ralph/ralph"
	socketPath = "/.ralph/egress.sock"
	resolvPath = "/etc/resolv.conf"
)

// withDefaults fills in what is not set. It looks at nothing that may change later.
func (c Config) withDefaults() (Config, error) {
	var errs []error
	set := func(field *string, value func() (string, error)) {
		if *field != "" {
			return
		}
		v, err := value()
		if err != nil {
			errs = append(errs, err)
		}
		*field = v
	}
	set(&c.StateDir, func() (string, error) {
		dir, err := os.UserCacheDir()
		return filepath.Join(dir, "ralph", "containers"), err
	})
	set(&c.Base, os.Getwd)
	set(&c.Owner, os.Hostname)
	set(&c.Helper.Path, func() (string, error) {
		if runtime.GOOS != "linux" {
			return "", errors.New("containers need ralph's program for Linux: build it with " +
				"GOOS=linux CGO_ENABLED=0 go build ./cmd/ralph, and name it")
		}
		return os.Executable()
	})
	if c.Home == "" {
		c.Home = "/home/agent"
	}
	if c.Network == "" {
		c.Network = "none"
	}
	if c.Files == "" {
		c.Files = sandboxes.Bind
	}
	if c.HostEnv == nil {
		c.HostEnv = os.Environ()
	}
	return c, errors.Join(append(errs, c.problems()...)...)
}

// unfiltered reports that Args ask the engine for no filter over system calls; then ralph's own would be in the way, too.
func (c Config) unfiltered() bool {
	return slices.ContainsFunc(c.Args, func(arg string) bool {
		return strings.HasSuffix(arg, "seccomp=unconfined") || arg == "--privileged" || arg == "--privileged=true"
	})
}

// problems are what is wrong with the values, whatever the machine looks like.
func (c Config) problems() (errs []error) {
	say := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Image == "" {
		say("no image is named; build one with: ralph image build")
	} else if strings.HasPrefix(c.Image, "-") {
		say("image %q starts with a dash", c.Image)
	}
	for name, dir := range map[string]string{"state folder": c.StateDir, "base folder": c.Base} {
		if !filepath.IsAbs(dir) {
			say("%s %q is not an absolute path", name, dir)
		}
	}
	for name, dir := range map[string]string{"home": c.Home, "working folder": c.Workdir} {
		if dir != "" && (!path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" || strings.ContainsAny(dir, ":,\n\x00")) {
			say("%s %q inside is not a clean absolute path without ':' and ','", name, dir)
		}
	}
	if c.Files != sandboxes.Bind && c.Files != sandboxes.Copy {
		say("files %q is not one of %s, %s", c.Files, sandboxes.Bind, sandboxes.Copy)
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
	for _, e := range c.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			say("environment entry %q is not NAME=VALUE", name)
		}
	}
	return errs
}
