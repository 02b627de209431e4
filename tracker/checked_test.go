package tracker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
)

// fixedTracker is a tracker that returns fixed values, valid or not.
type fixedTracker struct {
	tracker.ReadOnly
	list     []tracker.Issue
	problems []tracker.Problem
}

func (fixedTracker) Name() string { return "fixed" }

func (f fixedTracker) List(context.Context, tracker.Query) (tracker.Listing, error) {
	return tracker.Listing{Issues: f.list, Problems: f.problems}, nil
}

func (f fixedTracker) Get(context.Context, string) (tracker.Issue, error) {
	if len(f.list) == 0 {
		return tracker.Issue{}, tracker.ErrNotFound
	}
	return f.list[0], nil
}

// An issue that violates the contract becomes a problem that names it, and is not worked.
func TestChecked(t *testing.T) {
	t.Parallel()
	good := tracker.Issue{Key: "one", ID: "#1", URL: "u/1", Title: "t", Open: true}
	for want, change := range map[string]func(*tracker.Issue){
		"not safe":       func(i *tracker.Issue) { i.Key = "../x" },
		"no ID":          func(i *tracker.Issue) { i.ID = "" },
		"no URL":         func(i *tracker.Issue) { i.URL = "" },
		"title has 5000": func(i *tracker.Issue) { i.Title = strings.Repeat("x", 5000) },
		"text has": func(i *tracker.Issue) {
			i.Comments = []tracker.Comment{{Trusted: true, Body: strings.Repeat("x", tracker.MaxText)}, {Trusted: true, Body: "x"}}
		},
		"has the key": func(i *tracker.Issue) { i.Key = "one" },
	} {
		bad := tracker.Issue{Key: "two", ID: "#2", URL: "u/2", Title: "t", Open: true}
		change(&bad)
		l, err := tracker.Checked(fixedTracker{list: []tracker.Issue{good, bad}}).List(t.Context(), tracker.Query{})
		if err != nil || len(l.Issues) != 1 || l.Issues[0].Key != "one" || len(l.Problems) != 1 || !strings.Contains(l.Problems[0].Error(), want) {
			t.Errorf("%s: %+v, %v", want, l.Problems, err)
		}
		_, err = tracker.Checked(fixedTracker{list: []tracker.Issue{bad}}).Get(t.Context(), "two")
		if err == nil {
			t.Errorf("%s: Get returned it", want)
		}
	}
	// A commenter without trust cannot keep an issue from being worked.
	good.Comments = []tracker.Comment{{Body: strings.Repeat("x", tracker.MaxText+1)}}
	c := tracker.Checked(fixedTracker{list: []tracker.Issue{good}})
	if got, err := c.Get(t.Context(), "one"); err != nil || got.URL != "u/1" || !tracker.IsReadOnly(c) {
		t.Error(got, err)
	}
	if _, err := tracker.Checked(fixedTracker{}).Get(t.Context(), "one"); !errors.Is(err, tracker.ErrNotFound) {
		t.Error(err)
	}
	if tracker.Checked(nil) != nil {
		t.Error("no tracker became one")
	}
}

// The message of an error without a cause is still complete.
func TestUnavailableWithoutCause(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("list: %w", &tracker.UnavailableError{})
	if err.Error() != "list: tracker unavailable" {
		t.Error(err)
	}
}

// A problem without place or cause is still reported.
func TestProblemWithoutCause(t *testing.T) {
	t.Parallel()
	bare := []tracker.Problem{{Where: "row 7"}, {Err: errors.New("unreadable")}, {}, {Where: "row 8", Err: errors.New("torn")}}
	l, err := tracker.Checked(fixedTracker{problems: bare}).List(t.Context(), tracker.Query{})
	if err != nil {
		t.Fatal(err)
	}
	const unknown = "the tracker does not say what is wrong"
	for n, want := range []string{"row 7: " + unknown, "fixed: unreadable", "fixed: " + unknown, "row 8: torn"} {
		if got := l.Problems[n]; got.Error() != want || errors.Unwrap(got) == nil {
			t.Errorf("%q, want %q", got.Error(), want)
		}
	}
	if got := bare[0].Error(); got != "row 7: "+unknown {
		t.Errorf("unchecked: %q", got)
	}
	if bare[2].Err != nil {
		t.Error("the tracker's own list was changed")
	}
}
