package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
)

// answer is what a provider's Open has returned.
type answer struct {
	box sandboxes.Sandbox
	err error
}

// openBox opens the sandbox. Once the run is asked to end, that may take StopGrace. A provider that has not returned a moment after its
// context has ended is not waited for: what it opens later is closed.
func (w *Workspace) openBox(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	ctx, cancel := Within(ctx, w.Asked, w.c.StopGrace)
	returned := make(chan answer, 1)
	go func() {
		defer cancel()
		defer close(returned) // also when the provider ends the goroutine
		box, err := w.c.Sandboxes.Open(ctx, spec)
		returned <- answer{box, err}
	}()
	var got answer
	select {
	case got = <-returned:
	case <-ctx.Done():
		select {
		case got = <-returned:
		case <-time.After(moment):
			go w.c.closeLate(spec.Run, returned)
			w.Hung = true
			w.late = fmt.Errorf("Open has not returned for %s after it was to end: %w", moment, context.Cause(ctx))
			return nil, w.late
		}
	}
	if got.err == nil && got.box == nil {
		got.err = errors.New("Open returned neither a sandbox nor an error")
	}
	return got.box, got.err
}

// closeLate closes the sandbox of a run that has ended meanwhile.
func (c *Config) closeLate(run string, returned <-chan answer) {
	got := <-returned
	if got.err != nil || got.box == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), hurry)
	defer cancel()
	if err := got.box.Close(ctx); err != nil {
		c.Log.Warn("a sandbox that opened after the end of its run was not closed", "run", run, "error", err)
	}
}
