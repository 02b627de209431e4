package container

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// defaultSilence is how long nothing may come from a command before somebody looks whether its container still runs.
const defaultSilence = 15 * time.Second

var errUnheard = errors.New("its container has ended, and the engine's client has not noticed")

// listen returns when client is done. It stops a client that waits for a container that does not run any more: the client of
// an engine that missed the end, such as one with gVisor below it, waits for ever.
func (b *box) listen(client context.Context, heard *atomic.Bool, stop context.CancelCauseFunc) {
	t := time.NewTicker(b.provider.silence)
	defer t.Stop()
	for ended := false; ; {
		select {
		case <-t.C:
		case <-client.Done():
			return
		}
		switch {
		case heard.Swap(false):
			ended = false
		case ended: // and the client has had its time to pass on the last of what was said
			stop(errUnheard)
			return
		default:
			ended = b.hasEnded(client)
		}
	}
}

// hasEnded reports that the container certainly does not run.
func (b *box) hasEnded(ctx context.Context) bool {
	st, err := b.provider.state(ctx, b.name)
	if err == nil {
		return !st.Running
	}
	there, err := b.provider.exists(ctx, b.name)
	return err == nil && !there
}
