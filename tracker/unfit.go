package tracker

// Unfit is why an issue may not be worked, where the reason is in the issue itself. The zero value says that there is none.
type Unfit struct {
	Code   UnfitCode `json:"code"`
	Detail string    `json:"detail,omitempty"` // the label, who has taken it or what blocks it; may be hostile
}

// UnfitCode is a kind of reason. It is a closed set.
type UnfitCode string

const (
	UnfitGone       UnfitCode = "gone" // the tracker does not have it any more
	UnfitClosed     UnfitCode = "closed"
	UnfitLacks      UnfitCode = "lacks-label"    // Detail: a label that issues must carry to be worked
	UnfitExcluded   UnfitCode = "excluded-label" // Detail: a label that keeps issues from being worked
	UnfitHandedOver UnfitCode = "handed-over"    // it was left to a person meanwhile; Detail: the label that says so
	UnfitTaken      UnfitCode = "taken"          // Detail: Issue.Taken
	UnfitBlocked    UnfitCode = "blocked"        // Detail: Issue.Blockers

	UnfitConfidential UnfitCode = "confidential" // Issue.Confidential
)

// String puts the reason into words, such as "closed"; empty for the zero value.
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
		return "confidential, and others than its readers could see its branch and request: " +
			"make the issue public or the project private, or do it yourself"
	}
	return string(u.Code)
}

// Sentence is the reason as a sentence without a full stop.
func (u Unfit) Sentence() string {
	switch u.Code {
	case UnfitLacks, UnfitExcluded, UnfitHandedOver:
		return "the issue " + u.String()
	case UnfitTaken:
		return "somebody else works on the issue: " + u.Detail
	}
	return "the issue is " + u.String()
}

// Unfit is the reason in the issue why it may not be worked by somebody who wants all of the required labels and none of the
// excluded ones.
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

// Excluded is the Unfit of an issue that is confidential or carries one of these labels, whichever labels it needs to be worked.
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
