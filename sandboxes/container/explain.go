package container

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/describe"
	"github.com/ralph-pool/ralph/sandboxes/internal/engine"
)

// Answers returns an error if an engine does not answer, in one line with a fix. env is the environment of its program.
func Answers(ctx context.Context, e Engine, env []string) error {
	p := &Provider{engine: e, config: Config{HostEnv: env}}
	if _, err := p.call(ctx, e.dialect().info...); err != nil {
		return p.explain(ctx, err)
	}
	return nil
}

// explain determines why the engine does not answer, by trying its socket if that is local.
func (p *Provider) explain(ctx context.Context, err error) error {
	if _, refused := errors.AsType[*engine.CallError](err); !refused || p.engine.Dialect != DialectDocker {
		return err
	}
	socket, local := describe.Socket(p.config.HostEnv)
	if !local {
		return fmt.Errorf("%w; this has to work: docker info", err)
	}
	var d net.Dialer
	conn, dialErr := d.DialContext(ctx, "unix", socket)
	switch {
	case dialErr == nil:
		_ = conn.Close()
		return err
	case errors.Is(dialErr, syscall.EACCES):
		return fmt.Errorf("you are not allowed to use %s's socket %s: join its group with "+
			"sudo usermod -aG docker $USER and log in again (that group is as good as root), or use podman", p.engine.Name, socket)
	case errors.Is(dialErr, syscall.ENOENT), errors.Is(dialErr, syscall.ECONNREFUSED):
		return fmt.Errorf("%s's daemon does not run (nobody listens on %s): start it with "+
			"sudo systemctl start docker, or Docker Desktop", p.engine.Name, socket)
	}
	return fmt.Errorf("reach %s: %w", p.engine.Name, dialErr)
}

// explainImage determines why an image cannot be inspected: the engine does not answer, or the image does not exist.
func (p *Provider) explainImage(ctx context.Context, err error) error {
	if _, refused := errors.AsType[*engine.CallError](err); !refused {
		return err
	}
	if _, infoErr := p.call(ctx, p.engine.dialect().info...); infoErr != nil {
		return p.explain(ctx, infoErr)
	}
	return sandboxes.Fixable(fmt.Errorf("%s has no image %s", p.engine.Name, p.config.Image), p.buildImage())
}

// buildImage returns the fix for an image that is missing or unsuitable.
func (p *Provider) buildImage() sandboxes.Fix {
	return sandboxes.Fix{Setting: sandboxes.SetImage, Value: p.engine.Name}
}

// explainRun adds the likely fix to the error of a container that does not start.
func (p *Provider) explainRun(err error) error {
	_, local := describe.Socket(p.config.HostEnv)
	switch {
	case p.engine.Dialect == DialectDocker && !local, strings.Contains(err.Error(), "bind source path does not exist"):
		return sandboxes.Fixable(fmt.Errorf("%w; the engine may not see this host's files", err), sandboxes.Fix{Setting: sandboxes.SetCopy})
	case p.config.Runtime != "" && strings.Contains(err.Error(), p.config.Runtime):
		return sandboxes.Fixable(err, sandboxes.Fix{Setting: sandboxes.SetRuntime})
	}
	return err
}

// lastOutput returns the last line of output of the container's first process.
func (p *Provider) lastOutput(ctx context.Context, name string) string {
	var errs strings.Builder
	out, err := p.program().Copy(nil, &errs).Call(ctx, "logs", "--tail", "5", name)
	if err != nil {
		return err.Error()
	}
	return engine.LastLine(out + "\n" + errs.String())
}
