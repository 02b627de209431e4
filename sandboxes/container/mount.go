package container

import (
	"fmt"
	"path"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/describe"
)

// checkMount returns an error for a mount that is not possible or breaks the isolation.
func (p *Provider) checkMount(m sandboxes.Mount) error {
	if err := checkInside(m.Inside); err != nil {
		return err
	}
	real, _, err := m.Source()
	if err != nil {
		return err
	}
	for _, s := range describe.Sockets(p.config.HostEnv) {
		if sandboxes.IsInside(s, real) {
			return fmt.Errorf("the socket of a container engine is in it (%s), which is as good as root on the host", s)
		}
	}
	return nil
}

// checkInside returns an error for a path inside that no mount may cover.
func checkInside(dir string) error {
	if !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" {
		return fmt.Errorf("%q is not a clean absolute path inside", dir)
	}
	if sandboxes.IsInside(dir, path.Dir(helperPath)) || sandboxes.IsInside(path.Dir(helperPath), dir) {
		return fmt.Errorf("%s inside is reserved for ralph", dir)
	}
	return nil
}
