package container

import (
	"fmt"
	"strconv"

	"github.com/ralph-pool/ralph/sandboxes"
)

// arguments is the command line that makes the container.
func (pl *plan) arguments() ([]string, error) {
	c, t := pl.provider.config, pl.provider.engine.tongue()
	args := []string{
		"run", "--detach", "--name", pl.name,
		"--label", labelRun + "=" + pl.spec.Run, "--label", labelOwner + "=" + c.Owner,
		"--pull", "never", "--hostname", "ralph",
		"--stop-signal", "KILL", // the first process heeds no other
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--network", c.Network, "--user", pl.user.String(),
	}
	args = append(args, t.run...)
	if pl.userns != "" {
		args = append(args, "--userns", pl.userns)
	}
	if pl.spec.Egress != "" { // names are resolved, and web servers imitated, without a capability
		args = append(args, "--sysctl", "net.ipv4.ip_unprivileged_port_start=0")
	}
	args = append(args, pl.limitArguments()...)
	if !c.WritableRoot {
		args = append(args, "--read-only")
	}
	shared := min(pl.limits.Disk/4, maxShared)
	args = append(args, "--shm-size", strconv.FormatInt(max(shared, 1), 10))
	size := strconv.FormatInt(max((pl.limits.Disk-shared)/2, 1), 10)
	// The owner, because a mode is not heeded: a runtime takes the one of the image's folder.
	for _, dir := range []string{"/tmp", c.Home} {
		args = append(args, "--tmpfs", dir+":rw,exec,nosuid,nodev,mode=1777,size="+size+","+t.owned(pl.user))
	}
	relabel := func(sandboxes.Mount) string { return "" }
	switch {
	case c.SELinux == "disable":
		args = append(args, "--security-opt", "label=disable")
	case c.SELinux != "" && t.relabel == "":
		return nil, fmt.Errorf("%s cannot relabel mounts: %w; use SELinux disable", pl.provider.engine.Name, sandboxes.ErrUnsupported)
	case c.SELinux != "":
		relabel = func(m sandboxes.Mount) string {
			if m.ReadOnly { // others read it, too
				return t.relabel + "shared"
			}
			return t.relabel + c.SELinux
		}
	}
	if c.Files == sandboxes.Copy {
		more, err := pl.copyArguments()
		if err != nil {
			return nil, err
		}
		args = append(args, more...)
	} else {
		for _, m := range pl.shown() {
			flag, err := mountFlag(m, relabel(m))
			if err != nil {
				return nil, err
			}
			args = append(args, "--mount", flag)
		}
	}
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
	args = append(args, c.Args...)
	args = append(args, c.Image)
	args = append(args, c.Helper.Args...)
	args = append(args, insideStay)
	if pl.spec.Egress != "" {
		way := socketPath
		if c.Files == sandboxes.Copy {
			way = insideTunnel
		}
		args = append(args, way)
	}
	return args, nil
}

// maxShared is how much of the scratch space is /dev/shm: what engines give it by themselves.
const maxShared = 64 << 20

// limitArguments bound the container. Without bounds that hold there are none: an engine would only warn.
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
