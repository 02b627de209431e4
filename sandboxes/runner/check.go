package runner

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
)

// problem is what is wrong with the values, whatever the provider.
func (c Config) problem() error {
	switch {
	case (c.Provider == nil) == (c.Image == nil):
		return errors.New("name a provider or an image, and not both")
	case !filepath.IsAbs(c.Spec.Worktree):
		return fmt.Errorf("workspace %q is not an absolute path", c.Spec.Worktree)
	case !filepath.IsAbs(c.Artefacts):
		return fmt.Errorf("folder of artefacts %q is not an absolute path", c.Artefacts)
	case c.MaxLog < 0:
		return errors.New("the limit of logs is negative")
	}
	switch c.Network {
	case NetworkNone, NetworkOpen:
		if c.Spec.Egress != "" {
			return fmt.Errorf("network %q uses no egress proxy, but one is named; choose %q", c.Network, NetworkAllowed)
		}
	case NetworkAllowed:
		if c.Spec.Egress == "" {
			return fmt.Errorf("network %q needs the socket of an egress proxy", c.Network)
		}
	default:
		return fmt.Errorf("network %q is not one of %s, %s, %s", c.Network, NetworkNone, NetworkAllowed, NetworkOpen)
	}
	// Who can write to the artefacts from inside can forge the record, and lead it elsewhere by a link.
	if overlap(c.Artefacts, c.Spec.Worktree) {
		return fmt.Errorf("artefacts %s and workspace %s overlap; choose another folder", c.Artefacts, c.Spec.Worktree)
	}
	for _, m := range c.Spec.Mounts {
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
	return c.Image.problem()
}

// overlap reports whether one path is the other's own or below it.
func overlap(a, b string) bool {
	a, b = real(a), real(b)
	within := func(p, dir string) bool { return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") }
	return within(a, b) || within(b, a)
}

// real is a path without links, as far as it exists.
func real(p string) string {
	p = filepath.Clean(p)
	if found, err := filepath.EvalSymlinks(p); err == nil {
		return found
	}
	if _, err := os.Lstat(p); err == nil || p == "/" || p == "." {
		return p
	}
	return path.Join(real(filepath.Dir(p)), filepath.Base(p))
}

// unsupported refuses what the provider would not hold or not do.
func (c Config) unsupported(p sandboxes.Provider) error {
	can := p.Capabilities()
	refuse := func(what, mend string) error {
		return fmt.Errorf("sandbox %s %s: %w; %s", p.Name(), what, sandboxes.ErrUnsupported, mend)
	}
	switch {
	case c.Network != NetworkOpen && !can.Egress:
		return refuse("does not close the network", "choose another, or ask for network "+string(NetworkOpen))
	case c.Network == NetworkOpen && can.Egress:
		return refuse("has no open network", "ask for network "+string(NetworkAllowed))
	case can.Files == sandboxes.InPlace && len(c.Spec.Mounts) > 0:
		return refuse("mounts nothing", "leave out the mounts, or choose one that isolates")
	case !can.Limits && c.Spec.Limits != (sandboxes.Limits{}):
		return refuse("does not hold every limit on this host", "leave out the limits, or choose another")
	}
	return nil
}

// allowed picks variables by their exact names; of entries with one name the last counts.
func allowed(env, names []string) (picked []string) {
	for _, name := range names {
		for i := len(env) - 1; i >= 0; i-- {
			if strings.HasPrefix(env[i], name+"=") {
				picked = append(picked, env[i])
				break
			}
		}
	}
	return picked
}
