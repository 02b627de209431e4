package trackertest

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
)

// Forge is what a sweep needs of a tracker that hosts the code, too.
type Forge interface {
	tracker.Tracker
	tracker.Approver
	tracker.Requester
	tracker.Follower
	tracker.Commander
}

// Cost measures requests.
type Cost struct {
	Forge  Forge
	Calls  func() int                     // requests since it was called last
	Issues func(n int) []string           // adds open issues with the label no-human that a trusted person made; their keys
	Branch func(t *testing.T, key string) // makes the branch ralph/KEY; may be nil
	Talk   func(key string)               // adds a comment of a stranger to an issue, which begins with a command
}

// Check measures what sweeps and issues cost in requests, and compares that with the table of a document, in the column of
// the forge. What one issue costs may not depend on how many there are.
func (c Cost) Check(t *testing.T, document, column string) {
	t.Helper()
	ctx := t.Context()
	sweep := func() int {
		t.Helper()
		c.Calls()
		if _, err := c.Forge.Commands(ctx, "ralph/"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Forge.List(ctx, tracker.Query{Labels: []string{"no-human"}, Unworked: []string{"needs-human"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Forge.FollowUps(ctx, tracker.FollowUpQuery{Prefix: "ralph/"}); err != nil {
			t.Fatal(err)
		}
		return c.Calls()
	}
	work := func(key string) int {
		t.Helper()
		if c.Branch != nil {
			c.Branch(t, key)
		}
		c.Calls()
		issue, err := c.Forge.Get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Forge.Approved(ctx, issue, "no-human"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Forge.Get(ctx, key); err != nil { // once more before anything is published
			t.Fatal(err)
		}
		r := tracker.Request{Key: key, Head: "ralph/" + key, Base: "main", Title: "Fix", Body: "Text."}
		if _, err := c.Forge.OpenRequest(ctx, r); err != nil {
			t.Fatal(err)
		}
		if err := c.Forge.Report(ctx, key, tracker.Report{Run: "1", Body: "done"}); err != nil {
			t.Fatal(err)
		}
		if err := c.Forge.Change(ctx, key, tracker.Change{AddLabels: []string{"in-review"}, RemoveLabels: []string{"no-human"}}); err != nil {
			t.Fatal(err)
		}
		return c.Calls()
	}
	got := map[string]int{}
	sweep() // who ralph is, is asked once
	got["an idle sweep of an empty backlog"] = sweep()
	few := c.Issues(5)
	one := sweep()
	got["the same, with labelled issues"] = one
	work(few[0]) // who may write is asked once in a while, and how the labels are spelt
	work(few[1])
	got["an issue, from the claim to its request"] = work(few[2])
	sweep()
	two := sweep()
	work(few[3])
	first := sweep()
	three := sweep()
	got["an open request of ralph's, in each sweep"] = three - two
	got["finding commands on one that has changed, once"] = first - three
	many := c.Issues(200)
	if n, want := work(many[100]), got["an issue, from the claim to its request"]; n != want {
		t.Errorf("an issue of a large backlog costs %d requests, one of a small backlog %d", n, want)
	}
	sweep()
	large := sweep()
	c.Issues(100)
	got["100 more labelled issues, in each sweep"] = sweep() - large
	still := sweep()
	for range 1000 {
		c.Talk(few[0])
	}
	if n := sweep() - still; n > 5 { // four pages more, and once in a while who may write
		t.Errorf("1000 comments of a stranger cost %d requests", n)
	}
	if n := sweep() - still; n != 0 {
		t.Errorf("comments of a stranger cost %d requests when they have been read", n)
	}
	stated := Costs(t, document, column)
	for what, n := range got {
		if want, ok := stated[what]; !ok || want != n {
			t.Errorf("%s costs %d requests; %s says %d for %s", what, n, document, want, column)
		}
	}
}

// Costs reads the column of the document's table whose first column is "Requests for".
func Costs(t *testing.T, document, column string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	out, at := map[string]int{}, 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for n := range cells {
			cells[n] = strings.TrimSpace(cells[n])
		}
		switch {
		case cells[0] == "Requests for":
			at = slices.Index(cells, column)
		case at <= 0 || cells[0] == "---":
		case len(cells) > at:
			if out[cells[0]], err = strconv.Atoi(cells[at]); err != nil {
				t.Fatalf("%s: %v", document, err)
			}
		default:
			return out
		}
	}
	return out
}
