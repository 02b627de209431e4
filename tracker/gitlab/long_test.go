package gitlab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

const longCount = 34

// longText is a text of which several exceed the limit of one answer. It and the limit are a sixteenth of the real ones.
var longText = strings.Repeat("a", 1_000_000/16)

func shortAnswers(c *forge.Config) { c.HTTP.MaxBody = 32 << 20 / 16 }

// TestLongNotes: a stranger's long notes on an issue hide neither other notes nor commands on other issues.
func TestLongNotes(t *testing.T) {
	t.Parallel()
	r := newRig(t, shortAnswers)
	iid := r.project.AddIssue(gitlabtest.Issue{Title: "one", Author: r.ada})
	key := fmt.Sprint(iid)
	r.project.Label(r.ada, iid, "no-human")
	r.project.Comment(r.ada, iid, "use a map", false)
	other := r.project.AddIssue(gitlabtest.Issue{Title: "two", Author: r.ada})
	r.project.Comment(r.ada, other, "/ralph explain", false)
	for range longCount {
		r.project.Comment(r.eve, iid, longText, false)
	}
	r.project.Comment(r.ada, iid, longText, false)
	i := r.get(t, key)
	if len(i.Comments) != longCount+2 || i.Comments[0].Body != "use a map" || i.Comments[longCount+1].Body != longText {
		t.Errorf("%d comments", len(i.Comments))
	}
	for _, c := range i.Comments[1 : longCount+1] {
		if c.Author != "eve" || c.Body != "" || c.Trusted {
			t.Errorf("%d bytes of %s are kept, who may not direct ralph", len(c.Body), c.Author)
		}
	}
	if by, err := r.Approved(t.Context(), i, "no-human"); by != "ada" || err != nil {
		t.Errorf("approved by %q, %v", by, err)
	}
	if list, err := r.Commands(t.Context(), "ralph/"); len(list) != 1 || err != nil {
		t.Errorf("commands %v, %v", list, err)
	}
	for range 2 {
		if err := r.Report(t.Context(), key, tracker.Report{Run: "r", Body: "Done."}); err != nil {
			t.Error(err)
		}
	}
	if got := r.project.Notes(r.ralph, iid); len(got) != 1 {
		t.Errorf("%d reports", len(got))
	}
}

// TestLongMerges: long descriptions of a stranger's merge requests do not hide that a person has taken an issue.
func TestLongMerges(t *testing.T) {
	t.Parallel()
	r := newRig(t, shortAnswers)
	iid := r.project.AddIssue(gitlabtest.Issue{Title: "one", Author: r.ada, Labels: []string{"no-human"}})
	for n := range longCount {
		text := fmt.Sprintf("Closes #%d %s", iid, longText[20:])
		r.project.AddMerge(gitlabtest.Merge{Title: "t", Description: text, Source: fmt.Sprint("b", n), Target: "main", Author: r.eve})
	}
	if taken := r.list(t, "no-human").Issues[0].Taken; taken != "" {
		t.Errorf("taken: %s", taken)
	}
	r.project.AddMerge(gitlabtest.Merge{Title: "t", Description: fmt.Sprintf("Closes #%d", iid), Source: "mine", Target: "main", Author: r.ada})
	for n, taken := range []string{r.list(t, "no-human").Issues[0].Taken, r.get(t, fmt.Sprint(iid)).Taken} {
		if !strings.Contains(taken, "by ada") {
			t.Errorf("taken, in answer %d: %q", n, taken)
		}
	}
}

// TestLongThread: a thread that is too long by itself is left out; the others count.
func TestLongThread(t *testing.T) {
	t.Parallel()
	r := newRig(t, shortAnswers)
	iid := r.project.AddMerge(gitlabtest.Merge{Title: "x", Source: "ralph/42", Target: "main", Author: r.ralph})
	long := r.project.Discuss(iid, gitlabtest.Thread{By: r.eve, Body: "x", Resolvable: true})
	for range longCount {
		r.project.Answer(iid, long, r.eve, longText)
	}
	r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: "use a map", Resolvable: true})
	list, err := r.FollowUps(t.Context(), tracker.FollowUpQuery{Prefix: "ralph/"})
	if err != nil || len(list) != 1 || !strings.Contains(list[0].Feedback, "use a map") {
		t.Errorf("%d follow-ups, %v", len(list), err)
	}
}
