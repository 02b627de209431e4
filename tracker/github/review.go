package github

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

type review struct {
	ID          int64     `json:"id"`
	User        *user     `json:"user"`
	Body        string    `json:"body"`
	State       string    `json:"state"`
	CommitID    string    `json:"commit_id"`
	SubmittedAt time.Time `json:"submitted_at"`
}

// Whole is of an entry of a list.
func (r review) Whole() bool { return r.ID > 0 && r.State != "" && r.User.stated() }

type reviewComment struct {
	ID           int64  `json:"id"`
	Path         string `json:"path"`
	Line         int    `json:"line"`
	OriginalLine int    `json:"original_line"`
	Body         string `json:"body"`
	User         *user  `json:"user"`
}

// Whole is of an entry of a list.
func (c reviewComment) Whole() bool { return c.ID > 0 && c.User.stated() }

// review finds people with write permission who ask for changes in the head commit and have not said otherwise since.
// A review of an earlier commit has been answered by the commits that followed.
func (t *Tracker) review(ctx context.Context, p pull) (reason, bool, error) {
	all, err := pages[review](ctx, t, t.repo("/pulls/%d/reviews", p.Number), nil)
	if err != nil {
		return reason{}, false, err
	}
	var order []int64
	last := map[int64]review{} // by reviewer; a mere comment takes nothing back
	for _, r := range all {
		if r.User == nil || (r.State != "APPROVED" && r.State != "CHANGES_REQUESTED" && r.State != "DISMISSED") {
			continue
		}
		if _, known := last[r.User.ID]; !known {
			order = append(order, r.User.ID)
		}
		last[r.User.ID] = r
	}
	order = slices.DeleteFunc(order, func(id int64) bool {
		return last[id].State != "CHANGES_REQUESTED" || last[id].CommitID != p.Head.SHA
	})
	var people []*user
	for _, id := range slices.Backward(order) {
		people = append(people, last[id].User)
	}
	trusted, err := t.trusted(ctx, people)
	if err != nil {
		return reason{}, false, err
	}
	out := reason{why: tracker.ChangesRequested}
	var b strings.Builder
	for _, id := range order {
		r := last[id]
		if !trusted[id] {
			continue
		}
		fmt.Fprintf(&b, "%s asks for changes:\n%s\n", r.User.Login, cutAt(r.Body, maxPart))
		if err := t.remarks(ctx, p.Number, r, &b); err != nil {
			return reason{}, false, err
		}
		if r.SubmittedAt.After(out.at) {
			out.at = r.SubmittedAt
		}
	}
	out.text = b.String()
	return out, out.text != "", nil
}

// remarks are a review's comments on lines, by the reviewer.
func (t *Tracker) remarks(ctx context.Context, number int, r review, b *strings.Builder) error {
	all, err := pages[reviewComment](ctx, t, t.repo("/pulls/%d/reviews/%d/comments", number, r.ID), nil)
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.User == nil || c.User.ID != r.User.ID || b.Len() > maxFeedback {
			continue
		}
		line := c.Line
		if line == 0 {
			line = c.OriginalLine
		}
		fmt.Fprintf(b, "\n%s:%d\n%s\n", c.Path, line, cutAt(c.Body, maxPart))
	}
	return nil
}
