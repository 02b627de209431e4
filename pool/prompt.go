package pool

import (
	"context"

	"github.com/ralph-pool/ralph/loop"
)

// Prompt is exactly what the agent would be told about the issue in the first iteration of its next run. Commands in
// the template are shown, not run.
func (p *Pool) Prompt(ctx context.Context, key string) (string, error) {
	issue, err := p.cfg.Tracker.Get(ctx, key)
	if err != nil {
		return "", err
	}
	base, err := p.cfg.Repo.Base(ctx, p.cfg.Base)
	if err != nil {
		return "", err
	}
	runs, err := p.cfg.Journal.Runs(ctx, key)
	if err != nil {
		return "", err
	}
	w := p.newWorker(issue)
	w.rec.Base, w.rec.Attempt = base.Name, nextAttempt(runs)
	prompt := p.cfg.Prompt
	prompt.Builtin, _ = builtins(issue, w.rec)
	c := loop.Config{Gate: p.cfg.Gate, Signals: p.cfg.Signals, MaxIterations: p.cfg.MaxIterations}
	return prompt.Render(ctx, c.PromptVars(1, ""), nil)
}
