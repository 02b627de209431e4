package trackertest

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
)

// CheckCost counts the requests of sweeps and issues, and compares the counts with a table in a document, in the forge's column.
// The cost of one issue must not depend on the number of issues.
func CheckCost(t *testing.T, s *Site, document, column string) {
	t.Helper()
	ctx := t.Context()
	f, w := s.openWired(t)
	calls := func() int { return len(w.Calls()) }
	issues := func(n int) (keys []string) {
		for range n {
			keys = append(keys, key(s.Issue(Seed{Title: "One", Author: "ada", Labels: []string{"no-human"}})))
		}
		return keys
	}
	sweep := func() int {
		t.Helper()
		calls()
		if _, err := f.Commands(ctx, "ralph/"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.List(ctx, tracker.Query{Labels: []string{"no-human"}, Unworked: []string{"needs-human"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.FollowUps(ctx, tracker.FollowUpQuery{Prefix: "ralph/"}); err != nil {
			t.Fatal(err)
		}
		return calls()
	}
	work := func(key string) int {
		t.Helper()
		calls()
		issue, err := f.Get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Approved(ctx, issue, "no-human"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Get(ctx, key); err != nil { // again before publishing
			t.Fatal(err)
		}
		r := tracker.Request{Key: key, Head: "ralph/" + key, Base: "main", Title: "Fix", Body: "Text."}
		if _, err := f.OpenRequest(ctx, r); err != nil {
			t.Fatal(err)
		}
		if err := f.Report(ctx, key, tracker.Report{Run: "1", Body: "done"}); err != nil {
			t.Fatal(err)
		}
		if err := f.Change(ctx, key, tracker.Change{AddLabels: []string{"in-review"}, RemoveLabels: []string{"no-human"}}); err != nil {
			t.Fatal(err)
		}
		return calls()
	}
	got := map[string]int{}
	sweep() // ralph's identity is requested once
	got["an idle sweep of an empty backlog"] = sweep()
	few := issues(5)
	one := sweep()
	got["the same, with labelled issues"] = one
	work(few[0]) // write permissions and the labels' spelling are cached
	work(few[1])
	got["an issue, from the claim to its request"] = work(few[2])
	sweep()
	two := sweep()
	work(few[3])
	first := sweep()
	three := sweep()
	got["an open request of ralph's, in each sweep"] = three - two
	got["finding commands on one that has changed, once"] = first - three
	many := issues(200)
	if n, want := work(many[100]), got["an issue, from the claim to its request"]; n != want {
		t.Errorf("an issue of a large backlog costs %d requests, one of a small backlog %d", n, want)
	}
	sweep()
	large := sweep()
	issues(100)
	got["100 more labelled issues, in each sweep"] = sweep() - large
	still := sweep()
	for range 1000 {
		s.Say("mallory", 1, false, "/ralph fresh")
	}
	if n := sweep() - still; n > 5 { // four more pages, and sometimes write permissions
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

// Costs reads a column of the document's table whose first column is "Requests for".
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
