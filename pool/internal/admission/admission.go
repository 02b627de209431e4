// Package admission lets runs begin while the caps of their project are not used up.
//
// It reserves the most that a run may use before the run begins, so that two runs do not rely on the same rest of a cap.
// Its callers are packages pool and pool/run; package pool/ledger admits the requests of a run's agent.
package admission

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/filelock"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
)

// Desk admits the runs of one process. It is safe for concurrent use if its fields do not change after the first use.
type Desk struct {
	Store   journal.Store
	Shared  Shared          // the store of several machines below Store; nil: the store is not shared
	Pool    string          // namespace of the store's records
	Account *ledger.Account // nil: there are no caps
	Budget  loop.Budget     // budget of one run
	// Estimate is the usage that may count for an iteration before it starts.
	Estimate loop.Budget
	Dead     func(journal.Record) bool // reports whether no process works on the run any more
	Lock     string                    // file that processes lock from reading the caps until the run is recorded
}

// Shared is a store that several machines share. The machines admit runs one at a time.
type Shared interface {
	// Begin waits until no other machine is reading the caps. An error of end means that another one may have read them
	// meanwhile, or may not see what was saved.
	Begin(ctx context.Context, pool string) (end func() error, err error)
	// Others returns the runs in progress on other machines.
	Others(ctx context.Context, pool string) ([]journal.Record, error)
}

// Admit stores the record of a beginning run, with what the caps leave for it. Skip explains its error. A run without an
// agent uses nothing.
func (d *Desk) Admit(ctx context.Context, rec *journal.Record) error {
	if rec.Agent != "" && d.Account != nil {
		if err := os.MkdirAll(filepath.Dir(d.Lock), 0o700); err != nil {
			return err
		}
		unlock, err := filelock.Lock(ctx, d.Lock)
		if err != nil {
			return err
		}
		defer unlock()
		if d.Shared != nil {
			end, err := d.Shared.Begin(ctx, d.Pool)
			if err != nil {
				return err
			}
			if err := errors.Join(d.grant(ctx, rec), end()); err != nil {
				return errors.Join(err, d.Store.Forget(ctx, rec.ID))
			}
			return nil
		}
		return d.grant(ctx, rec)
	}
	return d.Store.Save(ctx, *rec)
}

// grant stores the record with what the caps leave for it.
func (d *Desk) grant(ctx context.Context, rec *journal.Record) error {
	left, err := d.left(ctx)
	if err != nil {
		return err
	}
	rec.Granted, rec.Reserved = ledger.Grant(left, d.Budget)
	// So that runs that begin at the same time find the amount used.
	rec.Reserved = rec.Reserved.Larger(agents.Usage{Input: d.Estimate.Tokens, CostUSD: d.Estimate.CostUSD})
	return d.Store.Save(ctx, *rec)
}

// Full returns why no run can begin now, or nil.
func (d *Desk) Full(ctx context.Context) error {
	_, err := d.left(ctx)
	return err
}

// left returns what the caps leave if every run in progress, in any process, uses its whole reservation. A dead run uses
// nothing more, even before it is recovered.
func (d *Desk) left(ctx context.Context) (loop.Budget, error) {
	if d.Account == nil {
		return loop.Budget{}, nil
	}
	open, err := d.Store.Find(ctx, journal.Query{Pool: d.Pool, Open: true})
	if err != nil {
		return loop.Budget{}, err
	}
	open = slices.DeleteFunc(open, d.Dead)
	if d.Shared != nil {
		others, err := d.Shared.Others(ctx, d.Pool)
		if err != nil {
			return loop.Budget{}, err
		}
		open = append(open, others...)
	}
	var reserved agents.Usage
	for _, r := range open {
		if r.Stage.Before(journal.StageVerify) {
			reserved = reserved.Add(ledger.Unspent(r.Reserved, r.Facts.Usage))
		}
	}
	return d.Account.Remaining(ctx, reserved)
}

// Skip returns why an issue is not worked after an error of Admit or Full; nil unless a cap is used up.
func Skip(err error) *journal.Skip {
	if spent, ok := errors.AsType[*ledger.SpentError](err); ok {
		return &journal.Skip{Code: journal.SkipCap, Detail: spent.Error(), Until: spent.Until}
	}
	return nil
}
