package container

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/inside"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/syntax"
)

// arguments returns the command line that creates the container.
func (pl *plan) arguments() ([]string, error) {
	c, t := pl.provider.config, pl.provider.engine.dialect()
	args := slices.Concat([]string{"run", "--detach", "--name", pl.name}, pl.labels(), []string{
		"--pull", "never", "--hostname", "ralph", "--read-only",
		"--stop-signal", "KILL", // the first process ignores every other signal
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--network", c.Network, "--user", pl.user.String(),
	}, t.run)
	if pl.userns != "" {
		args = append(args, "--userns", pl.userns)
	}
	if pl.spec.Egress != "" { // the forwarder binds the ports of DNS and web without a capability
		args = append(args, "--sysctl", "net.ipv4.ip_unprivileged_port_start=0")
	}
	args = append(args, pl.limitArguments()...)
	shared := min(pl.limits.Disk/4, maxShared)
	args = append(args, "--shm-size", strconv.FormatInt(max(shared, 1), 10))
	half := max((pl.limits.Disk-shared)/2, 1)
	scratch := func(dir string, size int64) {
		// Set the owner: the mode has no effect, because a runtime takes the mode of the image's folder.
		args = append(args, "--tmpfs", dir+":rw,exec,nosuid,nodev,mode=1777,size="+strconv.FormatInt(size, 10)+","+t.ownerOptions(pl.user))
	}
	scratch("/tmp", half)
	if !pl.spec.FillHome {
		scratch(c.Home, half+pl.layer)
	}
	mounts, err := pl.mountArguments()
	if err != nil {
		return nil, err
	}
	args = append(args, mounts...)
	for _, g := range c.Groups {
		args = append(args, "--group-add", g)
	}
	for _, d := range c.Devices {
		args = append(args, "--device", d)
	}
	if c.Runtime != "" {
		args = append(args, "--runtime", c.Runtime)
	}
	args = append(args, "--workdir", pl.workdir, "--entrypoint", helperPath)
	args = slices.Concat(args, c.Args, []string{c.Image}, helper(inside.Init)[1:])
	if pl.copiesHome() {
		args = append(args, inside.Home, c.Home)
	}
	switch {
	case pl.spec.Egress == "":
	case pl.spec.Disk != nil:
		args = append(args, inside.Tunnel)
	default:
		args = append(args, socketPath)
	}
	return args, nil
}

// mountArguments returns the arguments that show host files inside, with labels for SELinux.
func (pl *plan) mountArguments() (args []string, err error) {
	c, t := pl.provider.config, pl.provider.engine.dialect()
	relabel := func(sandboxes.Mount) string { return "" }
	switch {
	case c.SELinux == "disable":
		args = append(args, "--security-opt", "label=disable")
	case c.SELinux != "" && t.relabel == "":
		return nil, fmt.Errorf("%s cannot relabel mounts: %w; use SELinux disable", pl.provider.engine.Name, sandboxes.ErrUnsupported)
	case c.SELinux != "":
		relabel = func(m sandboxes.Mount) string {
			if m.ReadOnly { // other containers may read it, too
				return t.relabel + "shared"
			}
			return t.relabel + c.SELinux
		}
	}
	if pl.spec.Disk != nil {
		flags, err := pl.diskFlags(false)
		if err != nil {
			return nil, err
		}
		return slices.Concat(args, flags, pl.resolv), nil
	}
	for _, m := range pl.hostMounts() {
		flag, err := syntax.Mount("bind", m, relabel(m))
		if err != nil {
			return nil, err
		}
		args = append(args, "--mount", flag)
	}
	return args, nil
}

// maxShared is the maximum size of /dev/shm in bytes, which is the default of engines.
const maxShared = 64 << 20

// limitArguments returns the container's limits. An engine that cannot enforce them would only warn, so it gets none.
func (pl *plan) limitArguments() []string {
	if pl.provider.config.Unbounded {
		return nil
	}
	memory := strconv.FormatInt(pl.limits.Memory, 10)
	return []string{
		"--memory", memory, "--memory-swap", memory,
		"--cpus", strconv.FormatFloat(pl.limits.CPUs, 'f', -1, 64),
		"--pids-limit", strconv.Itoa(pl.limits.PIDs),
	}
}
