package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Pending is what a finished run has still to write to the tracker. It is stored in the claim, so that another clone can do it if
// this process dies.
type Pending struct {
	Report string         `json:"report,omitempty"` // empty: none
	Change tracker.Change `json:"change"`
}

// WritePending writes the report and makes the change of labels that a claim's record lists.
func WritePending(ctx context.Context, t tracker.Tracker, key string, d worktree.ClaimRecord) (err error) {
	var left Pending
	if err := json.Unmarshal(d.Pending, &left); err != nil {
		return fmt.Errorf("its claim does not say what: %w", err)
	}
	if left.Report != "" {
		err = t.Report(ctx, key, tracker.Report{Run: d.Run, Mark: d.Mark, Body: left.Report})
	}
	return errors.Join(err, t.Change(ctx, key, left.Change))
}
