package feedback

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// PromptFacts returns the values of the prompt.Keys that depend on the issue and its run, and the number of invisible characters
// removed from the issue's text. The text of a person's command is its last comment.
func PromptFacts(issue tracker.Issue, r journal.Run) (map[string]string, int) {
	total := 0
	clean := func(s string) string {
		s, n := tracker.Clean(s)
		total += n
		return s
	}
	seen := tracker.VisibleText
	if issue.Raw {
		seen = tracker.Clean
	}
	body, unseen := seen(issue.Body)
	total += unseen
	said := issue.Comments
	if a := r.Earlier.Asked; a != nil && a.Text != "" { // later iterations get no feedback
		said = append(slices.Clone(said), tracker.Comment{Author: a.By, Body: a.Text, Trusted: true})
	}
	var comments strings.Builder
	for _, c := range said {
		if c.Trusted {
			fmt.Fprintf(&comments, "%s wrote:\n%s\n\n", clean(c.Author), clean(c.Body))
		}
	}
	return map[string]string{
		"branch": r.Branch, "base": r.Base,
		"issue_key": r.Key, "issue_id": clean(issue.ID), "issue_title": clean(issue.Title),
		"issue_body": body, "issue_url": r.URL, "issue_labels": clean(strings.Join(issue.Labels, ", ")),
		"issue_comments": comments.String(), "attempt": fmt.Sprint(r.Attempt),
	}, total
}
