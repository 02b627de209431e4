package runner

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
)

// check returns an error for values that no provider supports.
func (c Config) check() error {
	spec := c.Session.Spec
	switch {
	case (c.Session.Provider == nil) == (c.Image == nil):
		return errors.New("name a provider or an image, and not both")
	case !filepath.IsAbs(spec.Worktree):
		return fmt.Errorf("workspace %q is not an absolute path", spec.Worktree)
	case !filepath.IsAbs(c.Artefacts):
		return fmt.Errorf("folder of artefacts %q is not an absolute path", c.Artefacts)
	case c.MaxLog < 0:
		return errors.New("the limit of logs is negative")
	case c.Network != NetworkNone && c.Network != NetworkAllowed && c.Network != NetworkOpen:
		return fmt.Errorf("network %q is not one of %s, %s, %s", c.Network, NetworkNone, NetworkAllowed, NetworkOpen)
	case c.Network == NetworkAllowed && spec.Egress == "":
		return fmt.Errorf("network %q needs the socket of an egress proxy", c.Network)
	case c.Network != NetworkAllowed && spec.Egress != "":
		return fmt.Errorf("network %q uses no egress proxy, but one is named; choose %q", c.Network, NetworkAllowed)
	// A command that can write to the artefacts could forge the record, and replace folders of it by links.
	case overlap(c.Artefacts, spec.Worktree):
		return fmt.Errorf("artefacts %s and workspace %s overlap; choose another folder", c.Artefacts, spec.Worktree)
	}
	for _, m := range spec.Mounts {
		if overlap(c.Artefacts, m.Host) {
			return fmt.Errorf("artefacts %s and mount %s overlap; choose another folder", c.Artefacts, m.Host)
		}
		if overlap(filesInside, m.Inside) {
			return fmt.Errorf("mount %s: %s inside is for the artefacts; choose another place", m.Host, filesInside)
		}
	}
	for _, name := range c.EnvAllow {
		if name == "" || strings.ContainsAny(name, "=*\x00") {
			return fmt.Errorf("allowed variable %q is not a name", name)
		}
	}
	if c.Image != nil && c.Image.Provider == nil {
		return errors.New("the image has no provider")
	}
	return nil
}

// overlap reports whether one path is the other or below it.
func overlap(a, b string) bool {
	a, b = resolveLinks(a), resolveLinks(b)
	return sandboxes.IsInside(a, b) || sandboxes.IsInside(b, a)
}

// resolveLinks resolves the links of the existing part of a path.
func resolveLinks(p string) string {
	p = filepath.Clean(p)
	if found, err := filepath.EvalSymlinks(p); err == nil {
		return found
	}
	if _, err := os.Lstat(p); err == nil || p == "/" || p == "." {
		return p
	}
	return path.Join(resolveLinks(filepath.Dir(p)), filepath.Base(p))
}

// unsupported returns an error for settings that the provider does not support.
func (c Config) unsupported() error {
	p, spec := c.Session.Provider, c.Session.Spec
	can, reason, hint := p.Capabilities(), "", ""
	switch {
	case c.Network != NetworkOpen && !can.Egress:
		reason, hint = "does not close the network", "choose another, or ask for network "+string(NetworkOpen)
	case c.Network == NetworkOpen && can.Egress:
		reason, hint = "has no open network", "ask for network "+string(NetworkAllowed)
	case can.Files == sandboxes.InPlace && len(spec.Mounts) > 0:
		reason, hint = "has no mounts", "leave out the mounts, or choose one that isolates"
	case !can.Limits && spec.Limits != (sandboxes.Limits{}):
		reason, hint = "does not enforce every limit on this host", "leave out the limits, or choose another"
	default:
		return nil
	}
	return fmt.Errorf("sandbox %s %s: %w; %s", p.Name(), reason, sandboxes.ErrUnsupported, hint)
}

// pickVariables returns the entries with the given variable names. The last entry of a name wins.
func pickVariables(env, names []string) (picked []string) {
	for _, name := range names {
		for _, kv := range slices.Backward(env) {
			if strings.HasPrefix(kv, name+"=") {
				picked = append(picked, kv)
				break
			}
		}
	}
	return picked
}
