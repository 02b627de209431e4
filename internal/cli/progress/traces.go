package progress

import (
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/trace"
)

// Tracer returns a tracer for a project's runs, or nil if traces are off. A nil Tracer does nothing.
func Tracer(a *compose.App, p *compose.Parts, project string) (*trace.Tracer, error) {
	if p.Traces != "otlp" {
		return nil, nil //nolint:nilnil // nil does nothing
	}
	p.Secrets.Add(trace.Secrets(a.Host.Env)...)
	t, err := trace.New(trace.Config{Project: project, Env: a.Host.Env, Version: a.Build().Version, Log: p.Log})
	if err != nil {
		return nil, exit.Usagef("traces: %w", err)
	}
	return t, nil
}
