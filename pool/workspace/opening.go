package workspace

import (
	"context"
	"errors"

	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/sandboxes"
)

// openSandbox opens the sandbox. Once the run is asked to end, that may take StopGrace. If the provider does not answer, a
// sandbox that it opens later is closed.
func (w *Workspace) openSandbox(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	ctx, cancel := halt.Within(ctx, halt.Grace(w.Asked, w.c.StopGrace))
	returned := startCall(func() (sandboxes.Sandbox, error) {
		defer cancel()
		return w.c.Sandboxes.Open(ctx, spec)
	})
	box, err := awaitCall(ctx, w.Asked, "Open", returned)
	if _, silent := errors.AsType[*silentError](err); silent {
		go w.c.closeLate(spec.Run, returned)
		w.Hung, w.importGivenUp = true, err
	}
	switch {
	case err != nil:
		return nil, err
	case box == nil:
		return nil, errors.New("Open returned neither a sandbox nor an error")
	}
	return &boundedSandbox{Sandbox: box, asked: w.Asked}, nil
}

// closeLate closes a sandbox that opens after its run was given up.
func (c *Config) closeLate(run string, returned <-chan answer[sandboxes.Sandbox]) {
	got := <-returned
	if got.err != nil || got.got == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), halt.StageLimit)
	defer cancel()
	if err := got.got.Close(ctx); err != nil {
		c.Log.Warn("a sandbox that opened after the end of its run was not closed", "run", run, "error", err)
	}
}

// CheckProvider returns nil if the provider can be used. Once the run is asked to end, that may take StopGrace.
func (w *Workspace) CheckProvider(ctx context.Context) error {
	timed, stop := context.WithTimeoutCause(ctx, halt.StageLimit, errors.New("it took too long"))
	defer stop()
	limited, cancel := halt.Within(timed, halt.Grace(w.Asked, w.c.StopGrace))
	defer cancel()
	_, err := awaitCall(limited, w.Asked, "Check", startCall(func() (any, error) { return nil, w.c.Sandboxes.Check(limited) }))
	return err
}
