package container

import (
	"encoding/csv"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
)

// mountFlag is a mount as --mount takes it: fields of one line of CSV, so that no character of a path means anything.
func mountFlag(m sandboxes.Mount, more string) (string, error) {
	return mountOf("bind", m, more)
}

func mountOf(kind string, m sandboxes.Mount, more string) (string, error) {
	if strings.ContainsAny(m.Host+m.Inside, "\n\r\x00") {
		return "", fmt.Errorf("mount %q: the path has a line break or NUL in it", m.Host)
	}
	fields := []string{"type=" + kind, "src=" + m.Host, "dst=" + m.Inside}
	switch {
	case m.ReadOnly && kind == "volume":
		fields = append(fields, "ro") // podman 4 knows no other word there
	case m.ReadOnly:
		fields = append(fields, "readonly")
	}
	if more != "" {
		fields = append(fields, strings.TrimPrefix(more, ","))
	}
	var line strings.Builder
	w := csv.NewWriter(&line)
	if err := w.Write(fields); err != nil {
		return "", err
	}
	w.Flush()
	return strings.TrimSuffix(line.String(), "\n"), w.Error()
}

// userMounts resolves the mounts of the Config and takes those of the Spec, and refuses what cannot or must not be shown.
func (p *Provider) userMounts(spec []sandboxes.Mount) ([]sandboxes.Mount, error) {
	var out []sandboxes.Mount
	for _, m := range p.config.Mounts {
		if rest, ok := strings.CutPrefix(m.Host, "~"); ok && (rest == "" || rest[0] == '/') {
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, fmt.Errorf("mount %s: %w", m.Host, err)
			}
			m.Host = filepath.Join(home, rest)
		}
		if !filepath.IsAbs(m.Host) {
			m.Host = filepath.Join(p.config.Base, m.Host)
		}
		out = append(out, m)
	}
	out = slices.Concat(out, spec)
	for _, m := range out {
		if err := p.mountable(m); err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.Host, err)
		}
	}
	return out, nil
}

// mountable refuses a mount that is none, and one that leads out of the sandbox.
func (p *Provider) mountable(m sandboxes.Mount) error {
	if !path.IsAbs(m.Inside) || path.Clean(m.Inside) != m.Inside || m.Inside == "/" {
		return fmt.Errorf("%q is not a clean absolute path inside", m.Inside)
	}
	if within(m.Inside, path.Dir(helperPath)) || within(path.Dir(helperPath), m.Inside) {
		return fmt.Errorf("%s is ralph's own place inside", m.Inside)
	}
	real, _, err := m.Source()
	if err != nil {
		return err
	}
	for _, s := range p.engineSockets() {
		if within(s, real) {
			return fmt.Errorf("the socket of a container engine is in it (%s), which is as good as root on the host", s)
		}
	}
	return nil
}

// engineSockets are sockets that let whoever sees them start containers on the host.
func (p *Provider) engineSockets() (found []string) {
	all := []string{"/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock"}
	if s, local := p.socket(); local {
		all = append(all, s)
	}
	for _, e := range p.config.HostEnv {
		if dir, ok := strings.CutPrefix(e, "XDG_RUNTIME_DIR="); ok && dir != "" {
			all = append(all, filepath.Join(dir, "podman/podman.sock"), filepath.Join(dir, "docker.sock"))
		}
	}
	for _, s := range all {
		if real, err := filepath.EvalSymlinks(s); err == nil {
			found = append(found, real)
		}
	}
	return found
}

// within reports whether a path is a folder's own or below it.
func within(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
}
