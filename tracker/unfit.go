package tracker

// Unfit is the reason in an issue itself why it may not be worked. The zero value means that there is none.
type Unfit struct {
	Code   UnfitCode `json:"code"`
	Detail string    `json:"detail,omitempty"` // the label, the Taken text or the blockers; may be hostile
}

// UnfitCode is the kind of reason. The constants below are all of them.
type UnfitCode string

const (
	UnfitGone       UnfitCode = "gone" // the tracker no longer has the issue
	UnfitClosed     UnfitCode = "closed"
	UnfitLacks      UnfitCode = "lacks-label"    // Detail: the missing required label
	UnfitExcluded   UnfitCode = "excluded-label" // Detail: the excluded label
	UnfitHandedOver UnfitCode = "handed-over"    // left to a person since; Detail: the label for that
	UnfitTaken      UnfitCode = "taken"          // Detail: Issue.Taken
	UnfitBlocked    UnfitCode = "blocked"        // Detail: Issue.Blockers

	UnfitConfidential UnfitCode = "confidential" // Issue.Confidential
)

// String describes the reason, such as "closed"; empty for the zero value.
func (u Unfit) String() string {
	switch u.Code {
	case UnfitLacks:
		return "lacks label " + u.Detail
	case UnfitExcluded:
		return "carries excluded label " + u.Detail
	case UnfitHandedOver:
		return "carries label " + u.Detail
	case UnfitTaken:
		return u.Detail
	case UnfitBlocked:
		return "blocked by " + u.Detail
	case UnfitConfidential:
		return "confidential, and people who cannot read it could see its branch and request: " +
			"make the issue public or the project private, or do it yourself"
	}
	return string(u.Code)
}

// Sentence returns the reason as a sentence without a full stop.
func (u Unfit) Sentence() string {
	switch u.Code {
	case UnfitLacks, UnfitExcluded, UnfitHandedOver:
		return "the issue " + u.String()
	case UnfitTaken:
		return "somebody else works on the issue: " + u.Detail
	}
	return "the issue is " + u.String()
}

// Unfit returns the reason why the issue may not be worked by a caller that requires all labels in require and none in exclude.
func (i Issue) Unfit(require, exclude []string) Unfit {
	if !i.Open {
		return Unfit{Code: UnfitClosed}
	}
	for _, l := range require {
		if !i.HasLabel(l) {
			return Unfit{UnfitLacks, l}
		}
	}
	if why := i.Excluded(exclude); why.Code != "" {
		return why
	}
	if i.Taken != "" {
		return Unfit{UnfitTaken, i.Taken}
	}
	if by := i.Blockers(); by != "" {
		return Unfit{UnfitBlocked, by}
	}
	return Unfit{}
}

// Excluded returns the Unfit of a confidential issue, or of one with a label in exclude, regardless of required labels.
func (i Issue) Excluded(exclude []string) Unfit {
	if i.Confidential {
		return Unfit{Code: UnfitConfidential}
	}
	for _, l := range exclude {
		if i.HasLabel(l) {
			return Unfit{UnfitExcluded, l}
		}
	}
	return Unfit{}
}
