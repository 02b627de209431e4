package report

import (
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
)

// Skip says in one line why the issue is not worked, and what changes that besides naming the issue. The detail may be hostile and is not
// neutralized here.
func Skip(s journal.Skip) string {
	switch s.Code {
	case journal.SkipUnlisted:
		return "not listed"
	case journal.SkipClaimed:
		return fmt.Sprintf("claimed by run %s on %s", s.Run, s.Host)
	case journal.SkipBadClaim:
		return "its claim cannot be read; if no other ralph is at work: git update-ref -d " + s.Detail
	case journal.SkipUnreported:
		return fmt.Sprintf("run %s has ended, and is still to be reported", s.Run)
	case journal.SkipHuman:
		return fmt.Sprintf("needs a human (label %s)", s.Detail)
	case journal.SkipAnswer:
		return fmt.Sprintf("waits for an answer (label %s): edit the issue or remove the label", s.Detail)
	case journal.SkipLabels:
		return fmt.Sprintf("%s by run %s, but its labels could not be changed: remove label %s yourself", s.Outcome, s.Run, s.Detail)
	case journal.SkipRetry:
		return fmt.Sprintf("waits until %s after attempt %d (%s)", s.Until.Local().Format(time.DateTime), s.Attempt, s.Outcome)
	case journal.SkipDone:
		return fmt.Sprintf("already %s by run %s on %s", s.Outcome, s.Run, s.Host)
	case journal.SkipRecovered:
		return "was finished from an earlier run that had died"
	case journal.SkipGone:
		return "is gone from the backlog"
	case journal.SkipEdited:
		return fmt.Sprintf("its text is not what was approved; read it and put the label %s on again", s.Detail)
	case journal.SkipCap:
		return s.Detail
	case journal.SkipOverlap:
		return fmt.Sprintf("waits for the run of %s: both are likely to change %s", s.For, s.Detail)
	case journal.SkipUnmerged:
		return fmt.Sprintf("waits until %s is merged (%s): both change %s", s.For, s.Where, s.Detail)
	case journal.SkipOpen:
		return fmt.Sprintf("waits for a merge: %s requests or branches are open, or on the way", s.Detail)
	case journal.SkipBusy:
		return "waits for runs of issues with the label " + s.Detail
	case journal.SkipStopped:
		return "the sweep was stopped"
	}
	return s.Detail
}
