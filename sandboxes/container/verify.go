package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// verify returns when commands can run in the container, or says why they never will.
func (p *Provider) verify(ctx context.Context, b *box, pl *plan) error {
	p.mu.Lock()
	known := p.verified[pl.image.id]
	p.mu.Unlock()
	if !known {
		if err := p.tryGit(ctx, b); err != nil {
			return err
		}
		p.mu.Lock()
		p.verified[pl.image.id] = true
		p.mu.Unlock()
	}
	if pl.spec.Egress != "" {
		return p.awaitEgress(ctx, b)
	}
	return nil
}

// tryGit runs the one program that every image has to have.
func (p *Provider) tryGit(ctx context.Context, b *box) error {
	errs := proc.NewTail(1 << 10)
	exit, err := b.exec(ctx, sandboxes.Command{Argv: []string{"git", "--version"}, Dir: "/", Stderr: errs}, false)
	var start *sandboxes.StartError
	switch {
	case errors.As(err, &start) && errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("image %s has no git; add it to the image's file and build it again with: ralph image build --engine %s",
			p.config.Image, p.engine.Name)
	case err != nil:
		return err
	case !exit.OK():
		return fmt.Errorf("git in image %s does not run (exit status %d): %s", p.config.Image, exit.Code, lastLine(errs.String()))
	}
	return nil
}

// awaitEgress waits until the helper leads out what commands send.
func (p *Provider) awaitEgress(ctx context.Context, b *box) error {
	ctx, cancel := context.WithTimeoutCause(ctx, endLimit, errors.New("the way to the egress proxy does not open"))
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		_, err := p.call(ctx, append(append([]string{"exec", b.name, helperPath}, p.config.Helper.Args...), insideReady)...)
		if err == nil {
			return nil
		}
		st, stateErr := p.state(ctx, b.name)
		if err := b.brokenBy(); err != nil { // looked at last: who gives up ends the container after saying why
			return err
		}
		if stateErr == nil && !st.Running {
			return fmt.Errorf("its container has ended: %s", p.lastWords(ctx, b.name))
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
	}
}

// lastWords is the end of what the container's first process has printed.
func (p *Provider) lastWords(ctx context.Context, name string) string {
	var both bytes.Buffer
	_, err := proc.Run(ctx, proc.Spec{
		Argv: p.engine.argv("logs", "--tail", "5", name), Dir: "/", Env: p.config.HostEnv, Stdout: &both, Stderr: &both,
	})
	if err != nil {
		return err.Error()
	}
	return lastLine(both.String())
}
