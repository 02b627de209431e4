package inside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/ralph-pool/ralph/sandboxes/egress/forward"
)

// tunnel forwards the commands' connections over in and out until these end. It writes TunnelReady to errs when it is
// ready.
func tunnel(ctx context.Context, in io.Reader, out, errs io.Writer) error {
	conceal()
	startThreads()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	session, err := tunnelEnd(stdio{in, out}, true)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	go func() {
		<-session.CloseChan()
		cancel(errors.New("ralph has hung up"))
	}()
	dial := func(context.Context) (net.Conn, error) { return session.OpenStream() }
	return run(ctx, forward.Config{Dial: dial}, func() error {
		_, err := fmt.Fprintln(errs, TunnelReady)
		return err
	})
}

type stdio struct {
	io.Reader
	io.Writer
}

func (stdio) Close() error { return nil }
