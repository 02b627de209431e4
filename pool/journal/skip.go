package journal

import (
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

// Skip is the reason why an issue is not worked now. Package pool/report formats it for people.
type Skip struct {
	Code     SkipCode      `json:"code"`
	Detail   string        `json:"detail,omitempty"` // data for the code, such as a label or an error
	Unfit    tracker.Unfit `json:"unfit,omitzero"`   // for SkipUnfit
	Run      string        `json:"run,omitempty"`    // the run that is the reason
	Host     string        `json:"host,omitempty"`   // host of that run
	Outcome  Outcome       `json:"outcome,omitempty"`
	Attempt  int           `json:"attempt,omitempty"`
	Until    time.Time     `json:"until,omitzero"`
	WaitsFor string        `json:"for,omitempty"`   // the issue that it waits for
	Where    string        `json:"where,omitempty"` // the request or branch of that issue, or of this one in review
}

// SkipCode is a kind of reason. The set is open.
type SkipCode string

const (
	SkipUnfit      SkipCode = "unfit"       // the issue does not qualify; Unfit: why
	SkipReview     SkipCode = "in-review"   // a run has succeeded, and a person has to review it; Detail: the label
	SkipUnlisted   SkipCode = "unlisted"    // the tracker does not list it
	SkipClaimed    SkipCode = "claimed"     // another run holds the claim
	SkipBadClaim   SkipCode = "bad-claim"   // the claim is unreadable; Detail: its ref, why, and what to do
	SkipUnreported SkipCode = "unreported"  // a run has ended and is not reported yet
	SkipHuman      SkipCode = "needs-human" // Detail: the label
	SkipAnswer     SkipCode = "needs-info"  // Detail: the label
	SkipLabels     SkipCode = "labels"      // a run is final, but its labels could not be changed; Detail: the label
	SkipRetry      SkipCode = "retry"       // waiting for a retry at Until
	SkipDone       SkipCode = "done"        // another host has finished it
	SkipHalted     SkipCode = "halted"      // a person has stopped its run on another host, or has taken the issue away, and this backlog does not show it
	SkipRecovered  SkipCode = "recovered"   // completed from an earlier run that had died
	SkipGone       SkipCode = "gone"        // the issue is no longer in the backlog
	SkipUnapproved SkipCode = "unapproved"  // Detail: why no authorised person has approved it
	SkipEdited     SkipCode = "edited"      // the issue of a request differs from the approved text; Detail: the pick-up label
	SkipStopped    SkipCode = "stopped"     // ralph was stopped
	SkipAsked      SkipCode = "asked"       // a person stopped it before its run began
	SkipCap        SkipCode = "cap"         // a cap of the project is used up until Until; Detail: the cap and the use
	SkipOverlap    SkipCode = "overlap"     // WaitsFor comes first, and is likely to change the same file; Detail: the file's path
	SkipUnmerged   SkipCode = "unmerged"    // the change of WaitsFor is not merged yet; Detail: the path of a file that both change
	SkipOpen       SkipCode = "open"        // the maximum number of requests is open; Detail: the numbers
	SkipBusy       SkipCode = "busy"        // the maximum number of issues with one of its labels is being worked; Detail: the label and the numbers
	SkipHeld       SkipCode = "held"        // a checkout of the user's has its branch; Detail: where, and what frees it
	SkipBroken     SkipCode = "broken"      // this host, the repository or the tracker has a problem with it; Detail: what
)
