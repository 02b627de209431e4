package run

import (
	"context"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/parking"
	"github.com/ralph-pool/ralph/pool/publish"
)

// Lot knows which agents are unavailable, for all runs of the runner.
func (r *Runner) Lot() *parking.Lot { return r.lot }

// turns chooses the run's next agent.
func (x *execution) turns(ctx context.Context, s *journal.State) (*parking.Turns, error) {
	for _, err := range x.space.Gateway.Missing {
		*s = x.warn(*s, err)
	}
	chain := x.space.Gateway.Agents.Only(x.c.Chain(x.run.Attempt).Choices())
	if !x.r.spaces.Private() { // its git is the user's own
		who, err := publish.Author(ctx, x.c.Identity, x.c.Tracker)
		if err != nil {
			return nil, err
		}
		chain = chain.WithEnv(who.Env())
	}
	return x.r.lot.Turns(chain), nil
}
