package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
)

// CheckLabels returns an error if one label would have two meanings. For example, if the label of finished issues were also a
// pick-up label, each sweep would work a finished issue again. require and exclude are those of the pool. CheckLabels fills in
// defaults.
func CheckLabels(l tracker.StateLabels, require, exclude []string) error {
	l = withDefaults(l)
	var errs []error
	say := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	among := func(list []string, label string) bool {
		return slices.ContainsFunc(list, func(o string) bool { return tracker.SameLabel(o, label) })
	}
	own := []struct {
		name, label string
		excludes    bool // an excluded label would stop the run that sets it, or the next one
	}{
		{"NeedsHuman", l.NeedsHuman, false}, {"NeedsInfo", l.NeedsInfo, false}, {"InReview", l.InReview, false},
		{"Claimed", l.Claimed, true}, {"Failed", l.Failed, true},
	}
	for n, a := range own {
		switch {
		case a.label == "":
			continue
		case strings.TrimSpace(a.label) == "":
			say("Labels.%s is blank", a.name)
		case among(require, a.label):
			say("Labels.%s is %q, which is also in Require; choose another", a.name, a.label)
		case a.excludes && among(exclude, a.label):
			say("Labels.%s is %q, which is also in Exclude; choose another", a.name, a.label)
		}
		for _, b := range own[:n] {
			if tracker.SameLabel(a.label, b.label) {
				say("Labels.%s and Labels.%[3]s are both %[2]q; choose another", a.name, a.label, b.name)
			}
		}
	}
	for _, label := range exclude {
		if among(require, label) {
			say("Require and Exclude both have %q: no issue would be worked", label)
		}
	}
	if among(require, "") {
		say("Require has an empty label")
	}
	return errors.Join(errs...)
}

func withDefaults(l tracker.StateLabels) tracker.StateLabels {
	l.NeedsHuman, l.NeedsInfo = cmp.Or(l.NeedsHuman, "needs-human"), cmp.Or(l.NeedsInfo, "needs-info")
	l.InReview = cmp.Or(l.InReview, "in-review")
	return l
}
