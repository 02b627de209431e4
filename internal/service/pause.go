package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// SharedPause is a pause that holds for a project wherever it is worked. Its methods are safe for concurrent use.
type SharedPause interface {
	// Set begins or ends the pause for all.
	Set(paused bool) error
	// On reports it as it was a moment ago. It does not block.
	On() bool
}

// PauseFile is there while the project with that state folder is paused. With a SharedPause it is there only for a service that has
// yet to tell the others.
func PauseFile(dir string) string { return filepath.Join(dir, "paused") }

// WritePause makes or removes such a file. A service notices when it opens the project; see Service.Pause.
func WritePause(file string, paused bool) error {
	if paused {
		return os.WriteFile(file, nil, 0o600)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// isPaused reports whether a project that is being opened is paused, and tells the others if that was decided while no service ran.
func (p *Parts) isPaused() (bool, error) {
	_, err := os.Stat(PauseFile(p.Dir))
	if p.Pause == nil {
		return err == nil, nil
	}
	if err == nil { // until the others know, nothing is begun
		if err := p.Pause.Set(true); err != nil {
			return false, fmt.Errorf("pause: %w", err)
		}
		if err := WritePause(PauseFile(p.Dir), false); err != nil {
			return false, fmt.Errorf("pause: %w", err)
		}
	}
	return p.Pause.On(), nil
}

func (p *project) pause(paused bool) error {
	parts := p.opened()
	if parts == nil {
		return ErrNotOpen
	}
	var err error
	if parts.Pause != nil {
		if err = parts.Pause.Set(paused); err != nil {
			err = fmt.Errorf("%w: %w", ErrAway, err)
		}
	} else {
		err = WritePause(PauseFile(parts.Dir), paused)
	}
	if err == nil {
		p.setPaused(paused)
	}
	return err
}

// setPaused reports whether it was otherwise before.
func (p *project) setPaused(paused bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.paused
	if p.paused = paused; paused {
		p.enoughWork()
	}
	return was != paused
}

// follow takes over a pause that others have begun or ended, and learns what they work.
func (p *project) follow() {
	parts := p.opened()
	if parts == nil {
		return
	}
	if parts.Pause != nil && p.setPaused(parts.Pause.On()) {
		p.wake()
	}
	if parts.Elsewhere != nil && p.asking.CompareAndSwap(false, true) {
		p.s.tick.Go(func() {
			defer p.asking.Store(false)
			p.lookElsewhere(parts)
		})
	}
}

// elsewhereTime bounds one look at what others work.
const elsewhereTime = 5 * time.Second

func (p *project) lookElsewhere(parts *Parts) {
	ctx, cancel := context.WithTimeout(p.s.life, elsewhereTime)
	defer cancel()
	list, err := parts.Elsewhere(ctx)
	if err != nil {
		return // they go on with it, or the next look has another answer
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.elsewhere = list
}
