package gitlab

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

func TestRateLimitIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.ada})
	r.server.LimitRequests(2, time.Minute)
	var slept atomic.Int64
	r.clock.onSleep = func(d time.Duration) {
		slept.Store(int64(d))
		r.server.LimitRequests(-1, 0)
	}
	if err := r.Report(t.Context(), "1", tracker.Report{Run: "run", Body: "x"}); err != nil {
		t.Fatal(err)
	}
	if d := time.Duration(slept.Load()); d < 50*time.Second || d > 70*time.Second {
		t.Errorf("waited %v, want about a minute", d)
	}
	if got := r.project.Notes(r.ralph, 1); len(got) != 1 {
		t.Errorf("notes are %q, want one", got)
	}
}

func TestRateLimitTooLong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.server.LimitRequests(0, time.Hour)
	_, err := r.List(t.Context(), tracker.Query{})
	if down, ok := errors.AsType[*tracker.UnavailableError](err); !ok || time.Until(down.Until) < 50*time.Minute {
		t.Errorf("List = %v, want *UnavailableError until in an hour", err)
	}
}
