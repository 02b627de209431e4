package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Pending is what a finished run still has to write to the tracker. It is stored in the claim, so that another clone can
// write it if this process dies.
type Pending struct {
	Report string         `json:"report,omitempty"` // empty: no report
	Change tracker.Change `json:"change"`
}

// WritePending writes the report and changes the labels as a claim's record asks. Anybody with push access may have written
// the record: so its text is quoted, and may limits the change to one that ralph itself makes.
func WritePending(ctx context.Context, t tracker.Tracker, key string, d worktree.ClaimRecord, may func(tracker.Change) tracker.Change) (err error) {
	var left Pending
	if err := json.Unmarshal(d.Pending, &left); err != nil {
		return fmt.Errorf("its claim cannot be read: %w", err)
	}
	if !journal.IsID(d.Run) {
		return fmt.Errorf("its claim does not name a run, but %q", d.Run)
	}
	if left.Report != "" {
		body := fmt.Sprintf("**ralph: %s**\n\nThe machine that worked on this stopped before it could report. "+
			"According to its claim, it is %s, and its report was:\n\n%s\n",
			tracker.QuoteLine(d.Outcome, line), tracker.QuoteLine(d.Host, line), tracker.Quote(left.Report, pendingMax))
		err = t.Report(ctx, key, tracker.Report{Run: d.Run, Mark: d.Mark, Body: body})
	}
	return errors.Join(err, t.Change(ctx, key, may(left.Change)))
}

// pendingMax is how much of another machine's report is quoted, in bytes.
const pendingMax = 30_000
