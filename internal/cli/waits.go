package cli

import (
	"context"
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
)

// waitsTime bounds the look at a backlog that a status takes.
const waitsTime = 10 * time.Second

// waitsShown is how many issues a status says to be waiting.
const waitsShown = 10

// waits are the issues that wait for others, or for requests to be merged. A status says nothing of a backlog that cannot be
// looked at.
func (a *app) waits(ctx context.Context, p *parts) (list []pool.Skipped) {
	ctx, cancel := context.WithTimeout(ctx, waitsTime)
	defer cancel()
	p.assumeNone() // nothing is run
	c, err := a.poolConfig(ctx, p)
	if err != nil {
		p.log.Debug("no look at the backlog", "error", err)
		return nil
	}
	worker, err := pool.NewWorker(c)
	if err != nil {
		p.log.Debug("no look at the backlog", "error", err)
		return nil
	}
	plan, err := worker.Plan(ctx)
	if err != nil {
		p.log.Debug("no look at the backlog", "error", err)
		return nil
	}
	list = plan.After
	for _, s := range plan.Skipped {
		if s.Skip.Code == journal.SkipUnmerged || s.Skip.Code == journal.SkipOpen {
			list = append(list, s)
		}
	}
	return list
}

// sayWaits says which issues wait, and for what.
func (a *app) sayWaits(list []pool.Skipped, name func(key string) string) {
	view, shown := &workView{ui: a.ui, name: name}, 0
	for _, s := range list {
		if s.Skip.Code == journal.SkipOpen {
			continue
		}
		if shown++; shown > waitsShown {
			a.ui.printf("More issues wait; `ralph work --dry-run` names them.\n")
			break
		}
		a.ui.printf("%s %s.\n", cleanLine(name(s.Issue.Key)), cleanLine(view.why(s)))
	}
	a.sayOpen(list)
}
