package trackertest

import (
	"errors"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
)

// Turn is an event that happens to an issue or to its project while ralph works.
type Turn string

// Events of one issue. They do not affect the others.
const (
	Transferred Turn = "the issue was transferred to another project"
	Unseen      Turn = "the issue was transferred to a project that ralph may not read"
	Deleted     Turn = "the issue was deleted"
)

// Events of the project, which affect every issue.
const (
	Renamed  Turn = "the project has another name"
	Hidden   Turn = "the project is hidden from ralph"
	NoIssues Turn = "issues are switched off"
	Revoked  Turn = "the token is revoked"
)

// Events that only prevent writes.
const (
	Archived Turn = "the project is archived"
	Demoted  Turn = "ralph's account may only read"
)

// Class is the reaction of package pool to an error.
type Class string

// The classes.
const (
	Fine Class = "fine"
	Gone Class = "this issue is gone"
	Stop Class = "no issue can be used"
	Away Class = "try again"
	Skip Class = "not for this issue"
)

// ClassOf returns the class of an error.
func ClassOf(err error) Class {
	_, refused := errors.AsType[*tracker.RefusedError](err)
	_, away := errors.AsType[*tracker.UnavailableError](err)
	switch {
	case err == nil:
		return Fine
	case errors.Is(err, tracker.ErrNotFound):
		return Gone
	case refused:
		return Stop
	case away:
		return Away
	}
	return Skip
}

// turns: an issue counts as gone only if nothing is wrong with the project; otherwise the error is about the project. Nothing is
// written to another project.
func turns(t *testing.T, h Harness) {
	type expected struct {
		get, list, write, other Class
		fix                     string // part of the error about the project
	}
	for turn, want := range map[Turn]expected{
		Transferred: {Gone, Fine, Gone, Fine, ""},
		Unseen:      {Gone, Fine, Gone, Fine, ""},
		Deleted:     {Gone, Fine, Gone, Fine, ""},
		Renamed:     {Stop, Stop, Stop, Stop, "git remote set-url"},
		Hidden:      {Stop, Stop, Stop, Stop, "check the project's name and the token's access"},
		NoIssues:    {Stop, Stop, Stop, Stop, "switch them on"},
		Revoked:     {Stop, Stop, Stop, Stop, "use a valid one"},
		Archived:    {Fine, Fine, Stop, Stop, ""}, // some forges say only that it is forbidden
		Demoted:     {Fine, Fine, Stop, Stop, "give it write permission"},
	} {
		t.Run(string(turn), func(t *testing.T) {
			t.Parallel()
			labels := []string{"no-human"}
			b := h.New(t, []Seed{
				{Name: "one", Title: "One", Labels: labels}, {Name: "two", Title: "Two", Labels: labels}, {Name: "three", Title: "Three", Labels: labels},
			})
			reported, fresh, other := b.Keys[0], b.Keys[1], b.Keys[2]
			do := b.Turns[turn]
			if do == nil {
				t.Skip("the forge does not know this")
			}
			report(t, b, reported, tracker.Report{Run: "old", Body: "Working."})
			do(reported)
			do(fresh)
			check := func(what string, err error, should Class) {
				t.Helper()
				got := ClassOf(err)
				if got != should {
					t.Errorf("%s: %v\n is %q, want %q", what, err, got, should)
				}
				if got == Stop && !strings.Contains(err.Error(), want.fix) {
					t.Errorf("%s: %v\n does not say: %s", what, err, want.fix)
				}
			}
			for _, key := range []string{reported, fresh} {
				_, err := b.Tracker.Get(t.Context(), key)
				check("Get", err, want.get)
				check("Report", b.Tracker.Report(t.Context(), key, tracker.Report{Run: "new", Body: "Done."}), want.write)
				check("Change", b.Tracker.Change(t.Context(), key, tracker.Change{AddLabels: []string{"ralph"}, RemoveLabels: labels}), want.write)
			}
			_, err := b.Tracker.List(t.Context(), tracker.Query{Labels: labels})
			check("List", err, want.list)
			check("Report on another issue", b.Tracker.Report(t.Context(), other, tracker.Report{Run: "new", Body: "Done."}), want.other)
		})
	}
}
