package sandboxes_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
)

func TestCommands(t *testing.T) {
	t.Parallel()
	var c sandboxes.Commands
	stopped := make(chan struct{})
	end, err := c.Begin(func(error) { close(stopped) })
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-stopped; end() }()
	failed := errors.New("failed")
	if _, err := c.Close(t.Context(), func(context.Context) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("Close: %v", err)
	}
	if _, err := c.Begin(nil); !errors.Is(err, sandboxes.ErrClosed) {
		t.Errorf("Begin after Close: %v", err)
	}
	removed := 0
	for range 2 {
		before := removed
		if first, err := c.Close(t.Context(), func(context.Context) error { removed++; return nil }); err != nil || first != (before == 0) {
			t.Errorf("Close: %v, %v", first, err)
		}
	}
	if removed != 1 {
		t.Errorf("removed %d times", removed)
	}
	var broken sandboxes.Commands
	broken.Break(failed)
	broken.Break(errors.New("later"))
	if _, err := broken.Begin(nil); !errors.Is(err, failed) || !errors.Is(broken.Broken(), failed) {
		t.Errorf("Begin of a broken sandbox: %v", err)
	}
}
