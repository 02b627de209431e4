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
	if err == nil && open && !slices.ContainsFunc(changed, func(key string) bool { return !slices.Contains(setup.Live, key) }) {
		if len(changed) > 0 {
			p.s.c.Log.Info("configuration changed", "project", p.name, "keys", changed)
		}
		p.mu.Lock()
		p.setup, p.configProblem = setup, ""
		p.parts.Pool.SetRetryDelay(cmp.Or(setup.Poll, minute))
		p.mu.Unlock()
		return
	}
	var parts *Parts
	if err == nil {
		parts, err = setup.Open(ctx, p.observe)
	}
	paused := false
	if err == nil {
		if paused, err = parts.isPaused(); err != nil {
			err = errors.Join(err, parts.Close())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tried = true
	if err != nil {
		line := OneLine(err)
		if line != p.configProblem {
			p.s.c.Log.Error("project not opened", "project", p.name, "error", line, "still_open", open)
		}
		if p.setup.Repo == "" { // no parts are open
			p.setup.Repo = setup.Repo
		}
		p.configProblem = line
		p.parts.reportProblem(line)
		return
	}
	if open {
		p.s.c.Log.Info("configuration changed", "project", p.name, "keys", changed)
	}
	p.setup, p.configProblem, p.paused = setup, "", paused
	if p.sweeping { // current runs end under their own configuration
		defer p.release(p.nextParts)
		p.nextParts = parts
		p.parts.Pool.Drain()
		p.stopWork()
		return
	}
	defer p.release(p.parts)
	p.parts = parts
}

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
