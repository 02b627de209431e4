package cli

import (
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/trace"
)

// tracer sends traces of a project's runs, where they were asked for; nil does nothing.
func (a *app) tracer(p *parts, project string) (*trace.Tracer, error) {
	if p.Traces != "otlp" {
		return nil, nil //nolint:nilnil // nil does nothing
	}
	p.secrets.Add(trace.Secrets(a.host.Env)...)
	t, err := trace.New(trace.Config{Project: project, Env: a.host.Env, Version: buildVersion().Version, Log: p.log})
	if err != nil {
		return nil, exit.Usagef("traces: %w", err)
	}
	return t, nil
}
