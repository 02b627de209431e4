package container

import (
	"github.com/ralph-pool/ralph/sandboxes/container/internal/inside"
	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

// role is the role of this program inside a container.
const role = "container"

func init() { //nolint:gochecknoinits // a registration
	reexec.Register(role, inside.Main)
}
