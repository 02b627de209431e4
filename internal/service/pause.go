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

// SharedPause is the pause of a project on all machines that work it. Its methods are safe for concurrent use.
type SharedPause interface {
	// Set starts or ends the pause everywhere.
	Set(paused bool) error
	// IsPaused reports the last known state. It does not block.
	IsPaused() bool
}

// PauseFile returns the path of the file that exists while the project with that state folder is paused. With a SharedPause
// it exists only until a service has passed the pause on.
func PauseFile(dir string) string { return filepath.Join(dir, "paused") }

// WritePause creates or removes the file. A running service reads it only when it opens the project; see Service.Pause.
func WritePause(file string, paused bool) error {
	if paused {
		return os.WriteFile(file, nil, 0o600)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// isPaused reports whether a project that is being opened is paused. It passes on a pause that was set while no service ran.
func (p *Parts) isPaused() (bool, error) {
	_, err := os.Stat(PauseFile(p.Dir))
	if p.Pause == nil {
		return err == nil, nil
	}
	if err == nil { // start nothing until the others know of the pause
		if err := p.Pause.Set(true); err != nil {
			return false, fmt.Errorf("pause: %w", err)
		}
		if err := WritePause(PauseFile(p.Dir), false); err != nil {
			return false, fmt.Errorf("pause: %w", err)
		}
	}
	return p.Pause.IsPaused(), nil
}

// Pause pauses a project: no runs are started, also after a restart, until Pause is called with false. Current runs
// continue. With Parts.Pause it applies to all processes that work the project. by names who asks for it, for the log.
func (s *Service) Pause(name string, paused bool, by string) error {
	p, _, err := s.opened(name)
	if err != nil {
		return err
	}
	if err := p.pause(paused, by); err != nil {
		return err
	}
	s.balance()
	p.wake()
	return nil
}

func (p *project) pause(paused bool, by string) error {
	parts := p.opened()
	if parts == nil {
		return ErrNotOpen
	}
	var err error
	if parts.Pause != nil {
		if err = parts.Pause.Set(paused); err != nil {
			err = fmt.Errorf("nothing has changed: %w: %w", ErrAway, err)
		}
	} else {
		err = WritePause(PauseFile(parts.Dir), paused)
	}
	if err == nil {
		p.setPaused(paused, by)
	}
	return err
}

// setPaused reports whether this changed the state, and logs a change. by names who asked for it.
func (p *project) setPaused(paused bool, by string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.paused
	if p.paused = paused; paused {
		p.stopWork()
	}
	if was != paused {
		p.s.c.Log.Info(map[bool]string{false: "project resumed", true: "project paused"}[paused], "project", p.name, "by", by)
	}
	return was != paused
}

// follow applies a pause that another process has started or ended, and updates the runs of other processes.
func (p *project) follow() {
	parts := p.opened()
	if parts == nil {
		return
	}
	if parts.Pause != nil && p.setPaused(parts.Pause.IsPaused(), "another machine") {
		p.wake()
	}
	if parts.Elsewhere != nil && p.readingRemoteRuns.CompareAndSwap(false, true) {
		p.s.tick.Go(func() {
			defer p.readingRemoteRuns.Store(false)
			p.readRemoteRuns(parts)
		})
	}
}

// remoteRunsTimeout limits one read of the runs of other processes.
const remoteRunsTimeout = 5 * time.Second

func (p *project) readRemoteRuns(parts *Parts) {
	ctx, cancel := context.WithTimeout(p.s.readContext, remoteRunsTimeout)
	defer cancel()
	list, err := parts.Elsewhere(ctx)
	if err != nil {
		return // keep the previous list until the next read
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remoteRuns = list
}
