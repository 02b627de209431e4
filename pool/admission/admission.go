// Package admission lets runs begin while the caps of their project have room.
//
// The most that a run may spend is reserved before it begins, so that two runs do not count on the same rest of a cap. Packages
// pool and pool/run call it; package pool/ledger admits the requests of a run's agent.
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

// Desk admits the runs of one process. Its fields are not changed after its first use; it is safe for concurrent use then.
type Desk struct {
	Store   journal.Store
	Pool    string          // namespace of the store's records
	Account *ledger.Account // nil: there are no caps
	Budget  loop.Budget     // of one run
	// Estimate is what may count for an iteration before it starts.
	Estimate loop.Budget
	Dead     func(journal.Record) bool // no process works on the run any more
	Lock     string                    // file that processes lock from a look at the caps until the run is on record
}

// Shared is a Store that several machines share. They admit runs one at a time.
type Shared interface {
	// Begin waits until no other machine looks at the caps. An error of end means that another may have done so meanwhile, or may
	// not see what was saved.
	Begin(ctx context.Context, pool string) (end func() error, err error)
	// Others lists the runs that other machines are doing.
	Others(ctx context.Context, pool string) ([]journal.Record, error)
}

// Admit stores the record of a run that begins, with what the caps leave for it; Skip explains the error. A run without an
// agent spends nothing.
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
		if shared, ok := d.Store.(Shared); ok {
			end, err := shared.Begin(ctx, d.Pool)
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
	// Others that begin at the same time find it spent.
	rec.Reserved = rec.Reserved.Larger(agents.Usage{Input: d.Estimate.Tokens, CostUSD: d.Estimate.CostUSD})
	return d.Store.Save(ctx, *rec)
}

// Full says why no run can begin now; nil: one can.
func (d *Desk) Full(ctx context.Context) error {
	_, err := d.left(ctx)
	return err
}

// left is what the caps leave when every running run, in any process, spends all of its own. A dead run spends nothing more, even
// if it is not recovered yet.
func (d *Desk) left(ctx context.Context) (loop.Budget, error) {
	if d.Account == nil {
		return loop.Budget{}, nil
	}
	open, err := d.Store.Find(ctx, journal.Query{Pool: d.Pool, Open: true})
	if err != nil {
		return loop.Budget{}, err
	}
	open = slices.DeleteFunc(open, d.Dead)
	if shared, ok := d.Store.(Shared); ok {
		others, err := shared.Others(ctx, d.Pool)
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
	return d.Account.Left(ctx, reserved)
}

// Skip is why an issue is not worked after an error of Admit or Full; nil for other errors than a spent cap.
func Skip(err error) *journal.Skip {
	if spent, ok := errors.AsType[*ledger.SpentError](err); ok {
		return &journal.Skip{Code: journal.SkipCap, Detail: spent.Error(), Until: spent.Until}
	}
	return nil
}
