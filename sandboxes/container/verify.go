package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/inside"
	"github.com/ralph-pool/ralph/sandboxes/internal/engine"
)

// verify returns nil when commands can run in the container, or the reason why they never will.
func (p *Provider) verify(ctx context.Context, b *box, pl *plan) error {
	if pl.spec.Egress != "" || pl.copiesHome() {
		if err := p.awaitReady(ctx, b); err != nil {
			return err
		}
	}
	p.mu.Lock()
	known := p.verified[pl.image.ID]
	p.mu.Unlock()
	if known {
		return nil
	}
	if err := p.tryGit(ctx, b); err != nil {
		return err
	}
	p.mu.Lock()
	p.verified[pl.image.ID] = true
	p.mu.Unlock()
	return nil
}

// tryGit runs git, the only program that every image needs.
func (p *Provider) tryGit(ctx context.Context, b *box) error {
	errs := proc.NewTail(1 << 10)
	exit, err := b.Exec(ctx, sandboxes.Command{Argv: []string{"git", "--version"}, Dir: "/", Stderr: errs})
	switch {
	case sandboxes.NoProgram(err):
		return sandboxes.Fixable(fmt.Errorf("image %s has no git; add it to the image's file and build it again", p.config.Image), p.buildImage())
	case err != nil:
		return err
	case !exit.OK():
		return fmt.Errorf("git in image %s does not run (exit status %d): %s", p.config.Image, exit.Code, engine.LastLine(errs.String()))
	}
	return nil
}

var errLate = errors.New("its first process did not become ready")

// awaitReady waits until the first process has copied the home, and it or the tunnel forwards the commands' connections.
func (p *Provider) awaitReady(ctx context.Context, b *box) error {
	// The first call, or that of the tunnel, is slow on a busy machine, so allow the time of one call.
	ctx, cancel := context.WithTimeoutCause(ctx, engine.CallLimit, errLate)
	defer cancel()
	if b.tunnel != nil {
		return p.awaitTunnel(ctx, b, tunnelTimeout)
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		_, err := p.call(ctx, append([]string{"exec", b.name}, helper(inside.Ready)...)...)
		if err == nil {
			return nil
		}
		st, stateErr := p.state(ctx, b.name)
		if err := b.commands.Broken(); err != nil { // checked last: the reason is set before the container is killed
			return err
		}
		if stateErr == nil && !st.Running {
			return fmt.Errorf("its container has ended: %s", p.lastOutput(ctx, b.name))
		}
		if err := retry.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}
