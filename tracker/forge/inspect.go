package forge

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// Clock differences: beyond clockWarn the expiry times of tokens are wrong, beyond clockFail servers reject logins.
const (
	clockWarn = 30 * time.Second
	clockFail = 5 * time.Minute
	tokenSoon = 7 * 24 * time.Hour // an expiry within this time is a warning
)

// Findings collects the results of an inspection.
type Findings []tracker.Finding

// OK adds a successful check.
func (f *Findings) OK(what, detail string, args ...any) {
	*f = append(*f, tracker.Finding{Subject: what, Severity: tracker.OK, Detail: fmt.Sprintf(detail, args...)})
}

// Warn adds a check of something that works but could be better.
func (f *Findings) Warn(what, fix, detail string, args ...any) {
	*f = append(*f, tracker.Finding{Subject: what, Severity: tracker.Warn, Detail: fmt.Sprintf(detail, args...), Fix: fix})
}

// Fail adds a defect that prevents ralph from working.
func (f *Findings) Fail(what, fix, detail string, args ...any) {
	*f = append(*f, tracker.Finding{Subject: what, Severity: tracker.Fail, Detail: fmt.Sprintf(detail, args...), Fix: fix})
}

// Error adds an error as a failure, with its hint as the fix.
func (f *Findings) Error(what string, err error) {
	fix := "check the address, the network and the token"
	if cause, ok := errors.AsType[*transport.Failure](err); ok {
		fix = cmp.Or(cause.Hint, fix)
	}
	f.Fail(what, fix, "%v", err)
}

// Labels adds whether all wanted labels exist.
func (f *Findings) Labels(want, missing []string) {
	if len(missing) > 0 {
		f.Warn(tracker.FindingLabels, "", "do not exist: %s", strings.Join(missing, ", "))
	} else {
		f.OK(tracker.FindingLabels, "exist: %s", cmp.Or(strings.Join(want, ", "), "none"))
	}
}

// Clock adds a comparison of this machine's clock with the forge's.
func (f *Findings) Clock(s *transport.Stack) {
	const what, fix = "clock", "synchronise it by NTP: timedatectl set-ntp true"
	switch by, known := s.Skew(); {
	case !known:
		f.OK(what, "the forge does not report its time")
	case by.Abs() >= clockFail:
		f.Fail(what, fix, "is %v ahead of the forge's", by.Round(time.Second))
	case by.Abs() >= clockWarn:
		f.Warn(what, fix, "is %v ahead of the forge's", by.Round(time.Second))
	default:
		f.OK(what, "agrees with the forge's")
	}
}

// Expiry adds the expiry of the token; the zero time means unknown.
func (f *Findings) Expiry(s *transport.Stack, at time.Time) {
	const what = "token expiry"
	switch {
	case at.IsZero():
		f.OK(what, "none known")
	case at.Sub(s.Now()) < tokenSoon:
		f.Warn(what, "make a new one in time", "%s", at.UTC().Format(time.DateTime)+" UTC")
	default:
		f.OK(what, "%s", at.UTC().Format(time.DateTime)+" UTC")
	}
}
