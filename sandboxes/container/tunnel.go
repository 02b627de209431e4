package container

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/inside"
	"github.com/ralph-pool/ralph/sandboxes/internal/engine"
)

// tunnel carries connections from inside to the egress proxy's socket if that cannot be mounted, over standard input and
// output of one call of the engine's "exec". All connections go to the socket; nothing inside can choose another target.
type tunnel struct {
	socket string
	end    context.CancelCauseFunc
	output *tunnelOutput
	done   chan struct{}
}

// errNoTunnel means that a tunnel does not become ready.
var errNoTunnel = errors.New("the tunnel to the egress proxy does not open")

// tunnelTimeout is the time limit for a new tunnel to become ready, which takes five seconds on a busy machine.
const tunnelTimeout = 30 * time.Second

// tunnelOutput is the error output of the engine's client and the helper.
type tunnelOutput struct {
	*proc.Tail
	ready chan struct{} // closed when the helper forwards connections
	once  sync.Once
}

func (o *tunnelOutput) Write(p []byte) (int, error) {
	n, err := o.Tail.Write(p)
	if strings.Contains(o.String(), inside.TunnelReady) {
		o.once.Do(func() { close(o.ready) })
	}
	return n, err
}

// explain adds the last line of output to an error.
func (o *tunnelOutput) explain(err error) error {
	if last := engine.LastLine(strings.ReplaceAll(o.String(), inside.TunnelReady, "")); last != "" {
		return fmt.Errorf("%w: %s", err, last)
	}
	return err
}

// openTunnel starts a tunnel. If the tunnel ends before it is closed, it aborts the sandbox.
func (p *Provider) openTunnel(b *box, socket string) *tunnel {
	ctx, end := context.WithCancelCause(context.Background())
	t := &tunnel{socket: socket, end: end, output: &tunnelOutput{Tail: proc.NewTail(1 << 10), ready: make(chan struct{})}, done: make(chan struct{})}
	here, there := net.Pipe()
	go func() {
		defer close(t.done)
		var serving sync.WaitGroup
		serving.Go(func() { inside.ServeTunnel(ctx, here, socket) })
		argv := append([]string{"exec", "--interactive", b.name}, helper(inside.Tunnel)...)
		exit, err := proc.Run(ctx, proc.Spec{
			Argv: p.program().Argv(argv...), Dir: "/", Env: p.config.HostEnv, Stdin: there, Stdout: there, Stderr: t.output,
		})
		closed := ctx.Err() != nil
		end(err)
		_ = there.Close()
		serving.Wait()
		if closed {
			return
		}
		switch {
		case err == nil && helperWasKilled(exit):
			err = fmt.Errorf("the tunnel to the egress proxy has ended: %w", sandboxes.ErrKilledInside)
		case err == nil:
			err = t.output.explain(errors.New("the tunnel to the egress proxy has ended"))
		}
		_ = b.abort(err)
	}()
	return t
}

// awaitTunnel waits until the tunnel is ready. Sometimes podman starts a call but delivers neither its output nor its end:
// such a call is ended and repeated.
func (p *Provider) awaitTunnel(ctx context.Context, b *box, timeout time.Duration) error {
	for {
		turn, cancel := context.WithTimeoutCause(ctx, timeout, errNoTunnel)
		err := b.tunnel.await(turn, b)
		cancel()
		if !errors.Is(err, errNoTunnel) || ctx.Err() != nil {
			return err
		}
		b.tunnel.close()
		b.tunnel = p.openTunnel(b, b.tunnel.socket)
	}
}

// await returns nil when connections are forwarded, or the reason why they never will be. It makes no calls of the engine:
// they would delay the call that carries the tunnel, and its output.
func (t *tunnel) await(ctx context.Context, b *box) error {
	select {
	case <-t.output.ready:
		return nil
	case <-t.done:
		if err := b.commands.Broken(); err != nil {
			return err
		}
		return sandboxes.ErrClosed
	case <-ctx.Done():
		return t.output.explain(context.Cause(ctx))
	}
}

// close ends the tunnel and waits; nil is allowed.
func (t *tunnel) close() {
	if t == nil {
		return
	}
	t.end(errors.New("the sandbox is closed"))
	<-t.done
}
