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
	memory               int64 // its limit in bytes

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
	stop context.CancelCauseFunc // ends the engine's client
	done chan struct{}
}

func (b *box) Workdir() string { return b.workdir }

// begin registers an Exec.
func (b *box) begin(stop context.CancelCauseFunc) (*execution, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, sandboxes.ErrClosed
	case b.broken != nil:
		return nil, b.broken
	}
	e := &execution{stop: stop, done: make(chan struct{})}
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

// remove removes the container and its files.
func (b *box) remove(ctx context.Context) error {
	if err := b.provider.end(ctx, b.name); err != nil {
		return err
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
