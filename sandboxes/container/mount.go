package container

import (
	"encoding/csv"
	"fmt"
	"path"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
)

// mountFlag is a mount as --mount takes it: fields of one line of CSV, so that no character of a path has a meaning. more is
// one more field, or empty.
func mountFlag(kind string, m sandboxes.Mount, more string) (string, error) {
	if strings.ContainsAny(m.Host+m.Inside, "\n\r\x00") {
		return "", fmt.Errorf("mount %q: the path has a line break or NUL in it", m.Host)
	}
	fields := []string{"type=" + kind, "src=" + m.Host, "dst=" + m.Inside}
	switch {
	case m.ReadOnly && kind == "volume":
		fields = append(fields, "ro") // the only word that podman 4 knows there
	case m.ReadOnly:
		fields = append(fields, "readonly")
	}
	if more != "" {
		fields = append(fields, more)
	}
	var line strings.Builder
	w := csv.NewWriter(&line)
	if err := w.Write(fields); err != nil {
		return "", err
	}
	w.Flush()
	return strings.TrimSuffix(line.String(), "\n"), w.Error()
}

// checkMount refuses a mount that cannot be, and one that leads out of the sandbox.
func (p *Provider) checkMount(m sandboxes.Mount) error {
	if err := checkInside(m.Inside); err != nil {
		return err
	}
	real, _, err := m.Source()
	if err != nil {
		return err
	}
	for _, s := range p.engineSockets() {
		if sandboxes.Within(s, real) {
			return fmt.Errorf("the socket of a container engine is in it (%s), which is as good as root on the host", s)
		}
	}
	return nil
}

// checkInside refuses a place inside that nothing may cover.
func checkInside(dir string) error {
	if !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" {
		return fmt.Errorf("%q is not a clean absolute path inside", dir)
	}
	if sandboxes.Within(dir, path.Dir(helperPath)) || sandboxes.Within(path.Dir(helperPath), dir) {
		return fmt.Errorf("%s is ralph's own place inside", dir)
	}
	return nil
}
