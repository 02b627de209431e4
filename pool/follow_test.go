package pool_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/schedule"
	"github.com/ralph-pool/ralph/tracker"
)

// reviewedForge is a forge with a review of ralph's request for an issue.
type reviewedForge struct {
	*forge

	review   time.Time // zero: there is none
	conflict bool      // a conflict with the base, instead of a review
	answered time.Time // the last result of FollowUpQuery.Answered
}

func (r *reviewedForge) FollowUps(ctx context.Context, q tracker.FollowUpQuery) (out []tracker.FollowUp, err error) {
	if r.answered, err = q.Answered(ctx, "a"); err != nil || !r.review.After(r.answered) {
		return nil, err
	}
	reason := tracker.ChangesRequested
	if r.conflict {
		reason = tracker.Conflict
	}
	return []tracker.FollowUp{{
		Key: "a", Head: q.Prefix + "a", Reason: reason, Feedback: "rename it", At: r.review,
		Request: tracker.RequestRef{Number: 1, URL: "https://forge.example/1"},
	}}, nil
}

// TestConflictNamesTheBase: a prompt about a conflict names the base, even the default one.
func TestConflictNamesTheBase(t *testing.T) {
	t.Parallel()
	prompt := filepath.Join(t.TempDir(), "prompt")
	f := newFixture(t, "cat > "+prompt+"; date >> a.txt; git add -A; git commit -qm work"+done)
	f.withRemote()
	host := &reviewedForge{forge: &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}, conflict: true}
	f.Config.Run.Publish, f.Config.Run.Tracker = journal.PublishRequest, host
	f.issue("a")
	f.one()
	host.review = time.Now().Add(time.Hour)
	r := f.one()
	text, err := os.ReadFile(prompt)
	if err != nil || r.FollowUp != string(tracker.Conflict) || !strings.Contains(string(text), "merge main into your branch") {
		t.Errorf("%+v, %v, prompt\n%s", r, err, text)
	}
}

// TestReviewIsAnswered: a review counts as answered after a run that was told of it and has pushed, and only then. For a run of
// another host the end of the run counts.
func TestReviewIsAnswered(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.withRemote()
	host := &reviewedForge{forge: &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}}
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

// unlistedForge is such a forge that lists only issues with the pick-up label, and has a review until it is answered.
type unlistedForge struct {
	*reviewedForge
	asks atomic.Bool
}

func (u *unlistedForge) FollowUps(ctx context.Context, q tracker.FollowUpQuery) ([]tracker.FollowUp, error) {
	if !u.asks.Load() {
		return nil, nil
	}
	return u.reviewedForge.FollowUps(ctx, q)
}

func (u *unlistedForge) List(ctx context.Context, q tracker.Query) (tracker.Listing, error) {
	l, err := u.reviewedForge.List(ctx, q)
	l.Issues = slices.DeleteFunc(l.Issues, func(i tracker.Issue) bool { return !i.HasLabel("no-human") })
	return l, err
}

// A run that follows up a request counts for the labels of its issue before it begins and while it is in progress, whichever
// process does it, although the forge no longer lists the issue.
func TestFollowUpCountsForLabels(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.withRemote()
	host := &unlistedForge{reviewedForge: &reviewedForge{forge: &forge{Tracker: g.Config.Run.Tracker, requests: map[string]int{}}}}
	host.review = time.Now().Add(time.Hour) // the forge's clock is ahead
	g.Config.Run.Publish, g.Config.Run.Tracker = journal.PublishRequest, host
	g.Config.Parallel, g.Config.ByLabel, g.Config.AllowOverlap = 4, schedule.Limits{"db": 1}, true
	g.issue("a", "labels: [no-human, db]")
	g.goOn("a")
	g.one()
	g.wait(g.started, 1, "started")
	g.issue("b", "labels: [no-human, db]")
	host.asks.Store(true)
	p := g.pool()
	busy := func(when string) {
		t.Helper()
		plan, err := p.Plan(t.Context())
		if err != nil || len(plan.Work) != 0 || len(plan.WaitingForRuns) != 1 || plan.WaitingForRuns[0].Skip.Code != journal.SkipBusy {
			t.Errorf("%s: work %+v, after %+v, %v", when, plan.Work, plan.WaitingForRuns, err)
		}
	}
	busy("before it")
	wait := g.begin(t.Context(), p)
	if got := g.next(1); got[0] != "a" {
		t.Errorf("%q started", got)
	}
	busy("while it is on")
	g.idle()
	host.asks.Store(false)
	g.goOn("a")
	if got := g.next(1); got[0] != "b" {
		t.Errorf("%q started", got)
	}
	g.goOn("b")
	if s := wait(); s.Count(journal.Succeeded) != 2 {
		t.Errorf("%+v", s)
	}
}

// An issue in review that gets an excluded label is left alone, whatever its request needs: the plan shows that, a command is
// refused, and a run in progress ends.
func TestExcludedIssueIsNotFollowedUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.withRemote()
	host := &reviewedForge{forge: &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}}
	f.Config.Run.Publish, f.Config.Run.Tracker, f.Config.Exclude = journal.PublishRequest, host, []string{"frozen"}
	h := f.forum()
	f.issue("a")
	f.one()
	h.request, host.review = 1, time.Now().Add(time.Hour) // the forge's clock is ahead
	label := func(c tracker.Change) {
		t.Helper()
		if err := h.Change(t.Context(), "a", c); err != nil {
			t.Fatal(err)
		}
	}
	plan, err := f.pool().Plan(t.Context())
	if err != nil || len(plan.FollowUp) != 1 {
		t.Fatalf("%+v, %v", plan, err)
	}
	label(tracker.Change{AddLabels: []string{"frozen"}})
	why := tracker.Unfit{Code: tracker.UnfitExcluded, Detail: "frozen"}
	if s := f.sweep(t.Context()); len(s.Runs) != 0 || len(s.Skipped) != 1 || s.Skipped[0].Skip.Unfit != why {
		t.Errorf("runs %+v, skipped %+v", s.Runs, s.Skipped)
	}
	if err := f.pool().Requeue(t.Context(), "a", "ada", tracker.Fix, "Rename it."); err == nil || !strings.Contains(err.Error(), "carries excluded label frozen") {
		t.Errorf("the command: %v", err)
	}
	r, err := f.pool().WorkPlanned(t.Context(), "a", &plan.FollowUp[0].FollowUp) // a plan made before that
	if err != nil || r.Skip == nil || r.Skip.Unfit != why {
		t.Errorf("%+v, %v", r, err)
	}
	label(tracker.Change{RemoveLabels: []string{"frozen"}})
	f.onStage(journal.StageWork, func(journal.Record) { label(tracker.Change{AddLabels: []string{"frozen"}}) })
	if r := f.one(); r.FollowUp == "" || r.Verdict.Outcome != journal.Superseded || r.Verdict.Reason.Unfit != why {
		t.Errorf("%+v", r.Verdict)
	}
}

// confidentialTracker is a tracker whose issues become confidential.
type confidentialTracker struct {
	tracker.Tracker
	on atomic.Bool
}

func (s *confidentialTracker) Unwrap() tracker.Tracker { return s.Tracker }

func (s *confidentialTracker) Get(ctx context.Context, key string) (tracker.Issue, error) {
	i, err := s.Tracker.Get(ctx, key)
	i.Confidential = s.on.Load()
	return i, err
}

// TestConfidentialIssue: nothing is published for an issue that became confidential during its run, or during the review of its
// request.
func TestConfidentialIssue(t *testing.T) {
	t.Parallel()
	for _, how := range []journal.Publish{journal.PublishBranch, journal.PublishMerge, journal.PublishRequest} {
		for _, follows := range []bool{false, true} {
			f := newFixture(t, "cat > /dev/null; date >> a.txt; git add -A; git commit -qm work"+done)
			remote := f.withRemote()
			host := &reviewedForge{forge: &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}}
			sly := &confidentialTracker{Tracker: host}
			f.Config.Run.Publish, f.Config.Run.Tracker = how, sly
			f.issue("a")
			if follows && how != journal.PublishRequest {
				continue
			}
			if follows {
				if r := f.one(); r.Published == "" {
					t.Fatalf("%+v", r.Verdict)
				}
				host.review = time.Now().Add(time.Hour)
			}
			before := f.git(remote, "for-each-ref", "refs/heads")
			f.onStage(journal.StageVerify, func(journal.Record) { sly.on.Store(true) })
			if r := f.one(); (r.FollowUp != "") != follows || r.Published != "" || r.Verdict.Reason.Unfit.Code != tracker.UnfitConfidential {
				t.Errorf("%s: %+v", how, r.State)
			}
			if now := f.git(remote, "for-each-ref", "refs/heads"); now != before {
				t.Errorf("%s: the remote has %s, had %s", how, now, before)
			}
		}
	}
}
