package pool_test

import (
	"context"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// reviewed is a forge where ralph's request for an issue has been reviewed.
type reviewed struct {
	*forge

	review   time.Time // zero: there is none
	answered time.Time // what it was told last
}

func (r *reviewed) FollowUps(ctx context.Context, q tracker.FollowUpQuery) (out []tracker.FollowUp, err error) {
	if r.answered, err = q.Answered(ctx, "a"); err != nil || !r.review.After(r.answered) {
		return nil, err
	}
	return []tracker.FollowUp{{
		Key: "a", Head: q.Prefix + "a", Reason: tracker.ChangesRequested, Feedback: "rename it", At: r.review,
		Request: tracker.RequestRef{Number: 1, URL: "https://forge.example/1"},
	}}, nil
}

// TestReviewIsAnswered: a review is answered by a run that was told of it and has pushed, and by nothing else; of another
// host's run its end counts.
func TestReviewIsAnswered(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.withRemote()
	host := &reviewed{forge: &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}}
	f.Config.Run.Publish, f.Config.Run.Tracker, f.Config.Run.Gate = journal.PublishRequest, host, lines("test -f a.txt")
	f.issue("a")
	first := f.one()
	f.sweep(t.Context())
	if !host.answered.Equal(first.Started) {
		t.Errorf("after the first run: answered up to %v, want %v", host.answered, first.Started)
	}
	host.review = time.Now().Add(time.Hour) // the forge's clock is ahead
	second := f.one()
	if second.FollowUp != string(tracker.ChangesRequested) || second.Verdict.Outcome != journal.Succeeded {
		t.Fatalf("the follow-up: %+v", second)
	}
	if v := second.Facts.Verify; v == nil || !v.Passed() || v.Tip != second.Tip || v.Tip == first.Tip {
		t.Errorf("the follow-up was published as %s, and verified: %+v", second.Tip, v)
	}
	if s := f.sweep(t.Context()); len(s.Runs) != 0 || !host.answered.Equal(host.review) {
		t.Errorf("%d runs, answered up to %v, want %v", len(s.Runs), host.answered, host.review)
	}
	host.review = time.Time{}
	f.store = &store{} // another host has an empty journal
	f.Config.Run.Store = f.store
	f.sweep(t.Context())
	if host.answered.Before(second.Started) || host.answered.After(second.Ended) {
		t.Errorf("on another host: answered up to %v, want the end of the run", host.answered)
	}
}
