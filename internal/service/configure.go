package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/pool/journal"
)

// configure loads the configuration and opens the project anew if it has changed. If loading or opening fails, the open parts stay.
func (p *project) configure(ctx context.Context) {
	p.mu.Lock()
	load, old, open := p.load, p.setup, p.parts != nil
	p.mu.Unlock()
	setup, err := load(ctx)
	changed := difference(old.Values, setup.Values)
	live := open && !slices.ContainsFunc(changed, func(key string) bool { return !slices.Contains(setup.Live, key) })
	var parts *Parts
	paused := false
	if err == nil && !live {
		parts, paused, err = p.open(ctx, setup)
	}
	if err != nil {
		p.keepParts(setup, err)
		return
	}
	if open && len(changed) > 0 {
		p.s.c.Log.Info("configuration changed", "project", p.name, "keys", changed)
	}
	if live {
		p.adopt(setup)
	} else {
		p.install(setup, parts, paused)
	}
}

// open opens the parts of a project. paused means that the project is paused.
func (p *project) open(ctx context.Context, setup Setup) (parts *Parts, paused bool, err error) {
	if parts, err = setup.Open(ctx, p.observe); err != nil {
		return nil, false, err
	}
	if paused, err = parts.isPaused(); err != nil {
		return nil, false, errors.Join(err, parts.Close())
	}
	return parts, paused, nil
}

// keepParts records why the project could not be opened with this configuration.
func (p *project) keepParts(setup Setup, err error) {
	line := OneLine(err)
	p.mu.Lock()
	parts, known := p.parts, line == p.configProblem
	p.tried, p.configProblem = true, line
	if p.setup.Repo == "" { // no parts are open
		p.setup.Repo = setup.Repo
	}
	p.mu.Unlock()
	text := refused
	if parts == nil {
		text = "project not opened"
		if setup.Problem != nil {
			setup.Problem(line)
		}
	}
	if !known {
		p.s.c.Log.Error(text, "project", p.name, "error", line)
	}
	parts.reportRefused(line)
}

// adopt applies a configuration that needs no new parts.
func (p *project) adopt(setup Setup) {
	p.mu.Lock()
	p.setup, p.configProblem = setup, ""
	parts := p.parts
	p.mu.Unlock()
	parts.Pool.SetRetryDelay(cmp.Or(setup.Poll, minute))
	parts.reportRefused("")
}

// install replaces the open parts, once the current sweep has ended.
func (p *project) install(setup Setup, parts *Parts, paused bool) {
	p.mu.Lock()
	p.tried, p.setup, p.configProblem, p.paused = true, setup, "", paused
	old := p.parts
	if p.sweeping { // current runs end under their own configuration
		old, p.nextParts = p.nextParts, parts
		p.parts.Pool.Drain()
		p.stopWork()
	} else {
		p.parts = parts
	}
	p.mu.Unlock()
	p.release(old)
}

// refused says that a project goes on with its last valid configuration.
const refused = "configuration refused; the last good one stays"

// problem formats an error in one line, with a hint to its fix.
func (p *Parts) problem(err error) string {
	if p != nil && p.Fix != nil && p.Fix(err) != "" {
		return OneLine(err) + "; " + p.Fix(err)
	}
	return OneLine(err)
}

// stopWork makes Parts.Work return once its runs have ended. The caller holds p.mu.
func (p *project) stopWork() {
	if p.cancelWork != nil {
		p.cancelWork(nil)
	}
}

func (p *project) observe(e journal.Event) {
	switch e.Kind {
	case journal.EventStarted, journal.EventEnded, journal.EventMerged, journal.EventRecovered:
		p.boardOutdated.Store(true)
	}
	p.s.c.Observe(p.name, e)
}

// difference returns the sorted keys whose values differ.
func difference(a, b map[string]string) (keys []string) {
	for key, v := range b {
		if was, ok := a[key]; !ok || was != v {
			keys = append(keys, key)
		}
	}
	for key := range a {
		if _, ok := b[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// OneLine returns the first line of an error, with the number of further lines.
func OneLine(err error) string {
	first, rest, more := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	if more {
		first = fmt.Sprintf("%s (and %d more)", first, strings.Count(rest, "\n")+1)
	}
	return first
}
