package journal

import (
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

// Skip is why an issue is not worked now. Package pool/report puts it into words.
type Skip struct {
	Code    SkipCode      `json:"code"`
	Detail  string        `json:"detail,omitempty"` // data that belongs to the code, such as a label or an error
	Unfit   tracker.Unfit `json:"unfit,omitzero"`   // for SkipUnfit
	Run     string        `json:"run,omitempty"`    // the run that is the reason
	Host    string        `json:"host,omitempty"`   // where that run is or was
	Outcome Outcome       `json:"outcome,omitempty"`
	Attempt int           `json:"attempt,omitempty"`
	Until   time.Time     `json:"until,omitzero"`
	For     string        `json:"for,omitempty"`   // the issue that it waits for
	Where   string        `json:"where,omitempty"` // that request, or its branch
}

// SkipCode is a kind of reason. The set is open.
type SkipCode string

const (
	SkipUnfit      SkipCode = "unfit"       // the issue itself does not qualify; Unfit: why
	SkipReview     SkipCode = "in-review"   // a run has succeeded, and what it did waits for a person; Detail: the label
	SkipUnlisted   SkipCode = "unlisted"    // the tracker does not list it
	SkipClaimed    SkipCode = "claimed"     // another run has it
	SkipBadClaim   SkipCode = "bad-claim"   // its claim cannot be read; Detail: its ref, why, and what to do
	SkipUnreported SkipCode = "unreported"  // a run has ended, and is still to be reported
	SkipHuman      SkipCode = "needs-human" // Detail: the label
	SkipAnswer     SkipCode = "needs-info"  // Detail: the label
	SkipLabels     SkipCode = "labels"      // a run is final, but its labels could not be changed; Detail: the label
	SkipRetry      SkipCode = "retry"       // it waits until Until
	SkipDone       SkipCode = "done"        // another host has finished it
	SkipHalted     SkipCode = "halted"      // a person has stopped its run on another host, or taken it away, and this backlog does not show it
	SkipRecovered  SkipCode = "recovered"   // it was finished from an earlier run that had died
	SkipGone       SkipCode = "gone"        // it is not in the backlog any more
	SkipUnapproved SkipCode = "unapproved"  // Detail: why nobody who may has approved it
	SkipEdited     SkipCode = "edited"      // a request's issue is not what was approved; Detail: the pick-up label
	SkipStopped    SkipCode = "stopped"     // ralph was stopped
	SkipAsked      SkipCode = "asked"       // a person has stopped it before its run began
	SkipCap        SkipCode = "cap"         // a cap of the project is spent until Until; Detail: which, and what is spent
	SkipOverlap    SkipCode = "overlap"     // For is worked first, which is likely to change the same file; Detail: its path
	SkipUnmerged   SkipCode = "unmerged"    // what For has changed waits to be merged; Detail: the path of a file of both
	SkipOpen       SkipCode = "open"        // as many requests as may be are open; Detail: how many of how many
	SkipBusy       SkipCode = "busy"        // as many with one of its labels as may be are worked; Detail: the label, how many of how many
	SkipBroken     SkipCode = "broken"      // something is wrong with this host or the repository; Detail: what
)
