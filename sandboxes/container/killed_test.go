package container_test

import (
	"errors"
	"io"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Exec fails with ErrKilledInside if a command kills its helper, but not if the engine kills the container.
func TestKilledInside(t *testing.T) {
	real(t, func(t *testing.T, name string, r rig) {
		for _, script := range []string{"kill -9 $PPID; exec sleep 1000", "kill -15 $PPID; exec sleep 1000", "kill -9 -1; exec sleep 1000"} {
			box := enter(t, r.provider(r.config(t)), sandboxes.Spec{Worktree: folder(t)})
			exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", script}})
			if !errors.Is(err, sandboxes.ErrKilledInside) {
				t.Errorf("%s: %+v, %v", script, exit, err)
			}
		}

		spec := sandboxes.Spec{Worktree: folder(t), Run: "killed-" + name}
		box := enter(t, r.provider(r.config(t)), spec)
		begun, saying := io.Pipe()
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			_, _ = begun.Read(make([]byte, 1))
			engineSays(t, r.engine.Name, "kill", containers(t, r.engine.Name, spec.Run))
		}()
		exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", "echo; exec sleep 1000"}, Stdout: saying})
		<-killed
		if err == nil || errors.Is(err, sandboxes.ErrKilledInside) {
			t.Errorf("killed by the engine: %+v, %v", exit, err)
		}
	})
}
