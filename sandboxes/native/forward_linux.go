package native

import (
	"context"
	"sync"

	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// egressPath leads the first process, and no other, to the egress socket.
const egressPath = "/proc/self/fd/5"

// forward leads what the commands send to the egress socket, until stop is called.
func forward(socket string) (stop func(), err error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	f, err := egress.NewForwarder(ctx, egress.ForwardConfig{Socket: socket})
	if err != nil {
		cancel(err)
		return nil, err
	}
	var running sync.WaitGroup
	running.Go(func() { _ = f.Run(ctx) }) // without it commands have no network, which they see
	return func() {
		cancel(nil)
		running.Wait()
	}, nil
}
