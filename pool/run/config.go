package run

import (
	"context"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/parking"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/worktree"
)

// The types of a runner's configuration.
type (
	// Config configures runs; see package config.
	Config = config.Config
	// GateOn is the place where the gate has to pass before a run may succeed.
	GateOn = config.GateOn
	// Reviewer configures the second agent.
	Reviewer = config.Reviewer
	// UnavailableError means that the agents, their sandbox or the gate cannot be used now.
	UnavailableError = report.UnavailableError
)

// Config returns the configuration with its defaults filled in.
func (r *Runner) Config() Config { return r.c }

// Admit stores the record of a run that begins, with what the project's caps leave for it. It fails, like Full, if that is nothing.
func (r *Runner) Admit(ctx context.Context, rec *journal.Record) error {
	return r.admission.Admit(ctx, rec)
}

// Full returns the reason why no run may begin under the project's caps now; nil: one may.
func (r *Runner) Full(ctx context.Context) error { return r.admission.Full(ctx) }

// Spaces returns the configuration of all workspaces.
func (r *Runner) Spaces() *workspace.Config { return r.spaces }

// Baselines returns the results of the gate on bases.
func (r *Runner) Baselines() *workspace.Baselines { return r.baselines }

// Policy returns the policy for the commits of all runs.
func (r *Runner) Policy() publish.Policy { return r.policy }

// Lot returns the register of unavailable agents, which all runs of the runner share.
func (r *Runner) Lot() *parking.Lot { return r.lot }

// Stamp numbers and redacts an event.
func (r *Runner) Stamp(e journal.Event) journal.Event { return r.events.Stamp(e) }

// Base returns the commit from which a run starts; see tree.Maker.
func (r *Runner) Base(ctx context.Context) (worktree.Base, error) {
	base, _, err := r.trees.Base(ctx)
	return base, err
}
