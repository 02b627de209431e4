package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

// Feedback is for a prompt; the forge keeps the rest.
const (
	maxFeedback = 32 << 10 // bytes in all
	maxPart     = 8 << 10  // bytes of one log, review or comment
)

// reason is why a pull request needs another run.
type reason struct {
	why  tracker.FollowUpReason
	text string
	at   time.Time
}

// FollowUps looks at ralph's own open pull requests. A request has one follow-up: a conflict counts first, then a
// person's review, then checks; its feedback has all of them. A conflict that GitHub has not worked out yet is none.
func (t *Tracker) FollowUps(ctx context.Context, prefix string) ([]tracker.FollowUp, error) {
	open, err := t.openPulls(ctx)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	me, err := t.identity(ctx)
	if err != nil {
		return nil, err
	}
	var out []tracker.FollowUp
	for _, p := range open {
		key, ours := strings.CutPrefix(p.Head.Ref, prefix)
		if !ours || key == "" || p.User == nil || p.User.ID != me.ID || !t.ownRepo(p) {
			continue
		}
		f, needed, err := t.followUp(ctx, p.Number)
		if err != nil {
			return nil, fmt.Errorf("see how pull request #%d fares: %w", p.Number, err)
		}
		if needed {
			f.Key = key
			out = append(out, f)
		}
	}
	return out, nil
}

// followUp collects the reasons of one pull request.
func (t *Tracker) followUp(ctx context.Context, number int) (tracker.FollowUp, bool, error) {
	var p pull // the listing does not tell whether it can be merged
	if _, err := t.call(ctx, http.MethodGet, t.repo("/pulls/%d", number), nil, &p); err != nil {
		return tracker.FollowUp{}, false, err
	}
	if p.State != "open" {
		return tracker.FollowUp{}, false, nil
	}
	var reasons []reason
	if p.Mergeable != nil && !*p.Mergeable && p.MergeableState == "dirty" {
		text := fmt.Sprintf("The branch %s conflicts with %s.\n", p.Head.Ref, p.Base.Ref)
		reasons = append(reasons, reason{tracker.Conflict, text, p.UpdatedAt})
	}
	for _, look := range []func(context.Context, pull) (reason, bool, error){t.review, t.checks} {
		r, found, err := look(ctx, p)
		if err != nil {
			return tracker.FollowUp{}, false, err
		}
		if found {
			reasons = append(reasons, r)
		}
	}
	if len(reasons) == 0 {
		return tracker.FollowUp{}, false, nil
	}
	f := tracker.FollowUp{Request: refOf(p), Head: p.Head.Ref, Commit: p.Head.SHA, Reason: reasons[0].why, At: reasons[0].at}
	var parts []string
	for _, r := range reasons {
		parts = append(parts, r.text)
	}
	f.Feedback = cutAt(strings.Join(parts, "\n"), maxFeedback)
	return f, true, nil
}
