package tracker

import (
	"fmt"
	"time"
)

// Distrust is the reason why an account may not direct ralph.
type Distrust string

const (
	TrustedAccount  Distrust = "" // the account may direct ralph
	NoWriteAccess   Distrust = "has no write permission"
	DeletedAccount  Distrust = "is a deleted account"
	InactiveAccount Distrust = "is not an active account"
	UnlistedBot     Distrust = "is a bot that is not listed as trusted"
	OwnAccount      Distrust = "is ralph's own account"
)

// Approval is the kind of an [UnapprovedError].
type Approval string

const (
	LabelUnknown   Approval = "unknown labeller"
	LabelUntrusted Approval = "untrusted labeller"
	EditUnknown    Approval = "unknown edit"
	TitleUntrusted Approval = "untrusted edit of the title"
	TextUntrusted  Approval = "untrusted edit of the text"
	TextOutdated   Approval = "text of before the label"
)

// UnapprovedError is the reason why an issue may not be worked in its present form. A person who may direct ralph has to
// read the issue and set the label again.
type UnapprovedError struct {
	Kind    Approval
	Label   string
	Account string // account that set the label or made the edit; empty when unknown
	ID      int64  // numeric ID of the account
	Why     Distrust
}

// CheckLabelledText returns nil if the text of i is the text at the time of the label, or newer. If the label was set after i was
// read, its author may have seen another text. Since the tracker's time of the last change can be older than the
// label although the text is the same, CheckLabelledText then calls again to read the issue anew, and compares the texts.
func CheckLabelledText(i Issue, set time.Time, label string, again func() (Issue, error)) error {
	if !i.Updated.Before(set) {
		return nil
	}
	now, err := again()
	if err == nil && now.TextHash() != i.TextHash() {
		err = &UnapprovedError{Kind: TextOutdated, Label: label}
	}
	return err
}

func (e *UnapprovedError) Error() string {
	const again = "read the issue and set the label again"
	switch e.Kind {
	case LabelUnknown:
		return fmt.Sprintf("it is not known who set the label %s; %s", e.Label, again)
	case TextOutdated:
		return fmt.Sprintf("its text changed while it was read, and label %s was set again; the next sweep looks again", e.Label)
	case EditUnknown:
		return fmt.Sprintf("it is not known who edited the text after the label %s was set; %s", e.Label, again)
	case LabelUntrusted:
		if e.Why == UnlistedBot {
			return fmt.Sprintf("label %s was set by %s (id %d), who %s", e.Label, e.Account, e.ID, e.Why)
		}
		return fmt.Sprintf("label %s was set by %s, who %s; somebody with write permission has to set it", e.Label, e.Account, e.Why)
	}
	what := "text"
	if e.Kind == TitleUntrusted {
		what = "title"
	}
	return fmt.Sprintf("%s, who %s, edited the %s after the label %s was set; %s", e.Account, e.Why, what, e.Label, again)
}
