package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
)

// box is one run's container.
type box struct {
	provider             *Provider
	name, state, workdir string
	env                  []string
	memory               int64   // its limit in bytes
	copies               *copies // nil where files are mounted
	tunnel               *tunnel // nil without egress, and where its socket is mounted

	closing sync.Mutex // held by the one Close that works

	mu      sync.Mutex
	closed  bool                    // guarded by mu; no Exec starts any more
	ended   bool                    // guarded by mu; Close has done its work
	broken  error                   // guarded by mu; why no Exec can succeed any more
	running map[*execution]struct{} // guarded by mu
	killed  int                     // guarded by mu; processes that the memory limit has cost
}

// note remembers how many processes the memory limit has cost so far.
func (b *box) note(killed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.killed = max(b.killed, killed)
}

// Notices says what limits have cost.
func (b *box) Notices() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.killed == 0 {
		return nil
	}
	return []string{sandboxes.MemoryNotice(b.killed, b.memory)}
}

// execution is one Exec in progress.
type execution struct {
	kill context.CancelCauseFunc // ends the command
	stop context.CancelCauseFunc // ends the engine's client
	done chan struct{}
}

func (b *box) Workdir() string { return b.workdir }

// begin registers a command.
func (b *box) begin(kill, stop context.CancelCauseFunc, own bool) (*execution, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case own:
	case b.closed:
		return nil, sandboxes.ErrClosed
	case b.broken != nil:
		return nil, b.broken
	}
	e := &execution{kill: kill, stop: stop, done: make(chan struct{})}
	b.running[e] = struct{}{}
	return e, nil
}

func (b *box) finish(e *execution) {
	b.mu.Lock()
	delete(b.running, e)
	b.mu.Unlock()
	close(e.done)
}

// Close removes the container, with everything that runs in it.
func (b *box) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.closing.Lock()
	defer b.closing.Unlock()
	b.mu.Lock()
	ended := b.ended
	var running []*execution
	for e := range b.running {
		running = append(running, e)
	}
	b.mu.Unlock()
	if ended {
		return nil
	}
	if b.copies != nil {
		if err := b.bringOut(ctx, running); err != nil {
			return fmt.Errorf("close sandbox %s: %w", b.provider.engine.Name, err)
		}
	}
	if err := b.remove(ctx); err != nil {
		return fmt.Errorf("close sandbox %s: %w", b.provider.engine.Name, err)
	}
	for _, e := range running {
		e.stop(sandboxes.ErrClosed)
		select {
		case <-e.done:
		case <-ctx.Done():
			return fmt.Errorf("close sandbox %s: %w", b.provider.engine.Name, context.Cause(ctx))
		}
	}
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	return nil
}

// bringOut ends the commands and takes what they have left. The container stays when that fails: nothing else has it.
func (b *box) bringOut(ctx context.Context, running []*execution) error {
	for _, e := range running {
		e.kill(sandboxes.ErrClosed)
	}
	for _, e := range running {
		select {
		case <-e.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err := b.copies.last(ctx); err != nil {
		name := b.provider.engine.Name
		return fmt.Errorf("%w; its container is kept: look with %s cp %s:%s DIR, remove it with %s rm --force %s",
			err, name, b.name, b.workdir, name, b.name)
	}
	return nil
}

// revive makes commands of our own possible in a container that has ended, with nothing else in it.
func (b *box) revive(ctx context.Context) error {
	if !b.isBroken() {
		return nil
	}
	p := b.provider
	_, _ = p.call(ctx, "kill", b.name) // it may have ended already
	for {
		st, err := p.state(ctx, b.name)
		if err != nil {
			return err
		}
		if !st.Running {
			break
		}
		t := time.NewTimer(endPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
	}
	_, err := p.call(ctx, "start", b.name)
	return err
}

func (b *box) isBroken() bool { return b.brokenBy() != nil }

// brokenBy is why no Exec can succeed any more; nil when one can.
func (b *box) brokenBy() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.broken
}

// remove removes the container and its files.
func (b *box) remove(ctx context.Context) error {
	b.tunnel.close()
	if err := b.provider.end(ctx, b.name); err != nil {
		return err
	}
	if b.copies != nil {
		err := b.copies.close()
		if !b.provider.config.Keep {
			err = errors.Join(err, b.provider.removeVolumes(ctx, b.name+"-"))
		}
		if err != nil {
			return err
		}
	}
	return os.RemoveAll(b.state)
}

// give up on the container: something in it is out of control. It is killed, so that all Execs end.
func (b *box) giveUp(why error) {
	b.mu.Lock()
	if b.broken == nil {
		b.broken = why
	}
	b.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(context.Background(), endLimit, errors.New("the engine does not answer"))
	defer cancel()
	_, _ = b.provider.call(ctx, "kill", b.name) // it may have ended by itself; Close will remove it in any case
}

const (
	// endLimit is how long the end of a tree, or of a container, may take before something is wrong.
	endLimit  = 20 * time.Second
	endRounds = 50
	endPause  = 50 * time.Millisecond
)

// end ends a container: it is removed, or only stopped where it is to be kept. It returns when nothing runs in it.
func (p *Provider) end(ctx context.Context, name string) error {
	var err error
	for range endRounds {
		if p.config.Keep {
			_, err = p.call(ctx, "kill", name)
		} else {
			_, err = p.call(ctx, append(p.engine.tongue().remove, name)...)
		}
		if err == nil && !p.config.Keep {
			return nil
		}
		// It may be gone already, or be removed by somebody else at this moment.
		there, listErr := p.listed(ctx, name)
		if listErr == nil && !there {
			return nil
		}
		t := time.NewTimer(endPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
	}
	if err == nil {
		err = fmt.Errorf("container %s does not end; look at it with: %s inspect %s", name, p.engine.Name, name)
	}
	return err
}

// listed reports whether there is a container of that name or, where containers are kept, whether it runs.
func (p *Provider) listed(ctx context.Context, name string) (bool, error) {
	args := []string{"ps", "--filter", "name=^" + name + "$", "--format", "{{.Names}}"}
	if !p.config.Keep {
		args = append(args, "--all")
	}
	out, err := p.call(ctx, args...)
	return strings.TrimSpace(out) != "", err
}
