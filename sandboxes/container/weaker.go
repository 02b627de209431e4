package container

import (
	"context"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// weakeningSettings describes the settings that weaken the isolation, for Capabilities.
func (c Config) weakeningSettings() string {
	var all []string
	add := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(c.Unbounded, "memory, CPU and processes are not limited")
	add(c.Network != "none", "the network %s has no allow-list", c.Network)
	add(c.UserNamespace == "host", "user ids inside are those of the host")
	add(c.SELinux == "disable", "SELinux does not confine it")
	add(len(c.Devices) > 0, "it has devices of the host (%s)", strings.Join(c.Devices, ", "))
	add(len(c.Groups) > 0, "commands are in additional groups (%s)", strings.Join(c.Groups, ", "))
	add(len(c.Args) > 0, "it is started with additional arguments (%s)", strings.Join(c.Args, " "))
	return strings.Join(all, "; ")
}

// checkNamespace returns an error for a namespace of the host or another container: commands could reach services there.
func checkNamespace(namespace, mode string) error {
	switch {
	case strings.HasPrefix(mode, "-"):
		return fmt.Errorf("%s %q starts with a dash", namespace, mode)
	case namespace == "network" && mode == "host", strings.HasPrefix(mode, "container:"), strings.HasPrefix(mode, "ns:"):
		return fmt.Errorf("%s %q would join a %s that is not the sandbox's own", namespace, mode, namespace)
	}
	return nil
}

// nameFormat matches container names that engines accept.
var nameFormat = pattern.Lazy(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$`)

// rename gives the container the name that the Spec asks for. The container was created under a unique name, so that a name
// that is taken never makes ralph remove another program's container.
func (b *box) rename(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	if _, err := b.provider.call(ctx, "rename", b.name, name); err != nil {
		return fmt.Errorf("name the container %s: %w", name, err)
	}
	b.name = name
	return nil
}
