package pool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// TestTrackerFailsAtEveryCall fails each call of the tracker in three ways: the tracker is unavailable once, it does not know the
// issue once, and it refuses that kind of call until people intervene. Afterwards the work is published exactly once, or handed
// to a person; no claim is held and nothing is reported twice.
func TestTrackerFailsAtEveryCall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		forever bool
	}{
		"unavailable once": {&tracker.UnavailableError{Err: errors.New("502")}, false},
		"not found once":   {fmt.Errorf("get: %w", tracker.ErrNotFound), false},
		"refused":          {errors.New("422"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kinds := map[string]bool{}
			for call := 1; ; call++ {
				failed := outage(t, call, c.err, c.forever)
				if failed == "" {
					break
				}
				kinds[failed] = true
			}
			for _, kind := range []string{"list", "get", "request", "report", "change"} {
				if !kinds[kind] {
					t.Errorf("no call of %s failed", kind)
				}
			}
		})
	}
}

// outage sweeps while one call fails, and then until nothing is left to do. It returns the kind of the call; empty if there were
// fewer calls.
func outage(t *testing.T, call int, err error, forever bool) (kind string) {
	t.Helper()
	f := newFixture(t, commits)
	bare := f.withRemote()
	host := &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}, fail: call, err: err, forever: forever}
	f.Config.Run.Publish, f.Config.Run.Tracker, f.Config.Run.Retry.Backoff = journal.PublishRequest, host, -1
	f.issue("a")
	p := f.pool()
	sweep := func() {
		t.Helper()
		if _, err := p.Sweep(t.Context()); err != nil && host.failed == "" {
			t.Fatal(err)
		}
	}
	for range 3 {
		sweep()
	}
	host.mu.Lock()
	kind, host.forever, host.fail = host.failed, false, 0
	host.mu.Unlock()
	for range 2 {
		sweep()
	}
	if kind == "" {
		return ""
	}
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("call %d (%s, forever %v): %s", call, kind, forever, fmt.Sprintf(format, args...))
	}

	runs, text := f.runs("a"), f.text("a")
	if len(runs) == 0 {
		fail("it was not worked:\n%s", text)
		return kind
	}
	end := runs[len(runs)-1]
	published := f.git(bare, "for-each-ref", "--format=%(objectname)", "refs/heads/ralph")
	switch {
	case end.Verdict.Outcome == journal.Succeeded:
		if host.requests["ralph/a"] == 0 || published != end.Tip {
			fail("published %q by %v, want %s", published, host.requests, end.Tip)
		}
	case !forever || !end.Verdict.Final || !strings.Contains(text, "needs-human") && end.Unlabelled == "":
		fail("the last run is %+v\n%s", end, text)
	}
	want := 1
	if end.Unreported != "" || end.Verdict.Outcome != journal.Succeeded {
		want = 0
	}
	if n := strings.Count(text, "**ralph: succeeded**"); n != want || want == 0 && !forever {
		fail("%d reports, want %d:\n%s", n, want, text)
	}
	if end.Unlabelled == "" && want == 1 && (strings.Contains(f.labels("a"), "no-human") || !strings.Contains(text, "in-review")) {
		fail("labels:\n%s", text)
	}
	succeeded := 0
	for _, r := range runs {
		if r.Verdict.Outcome == journal.Succeeded {
			succeeded++
		}
		if r.Tip != "" && f.git(f.repo, "for-each-ref", "--contains", r.Tip) == "" {
			fail("commit %s is on no ref", r.Tip)
		}
	}
	if succeeded > 1 {
		fail("%d runs succeeded", succeeded)
	}
	f.clean()
	return kind
}

// unreadableTracker is a tracker whose issues cannot be read while err is set.
type unreadableTracker struct {
	tracker.Tracker
	err atomic.Pointer[error]
}

func (u *unreadableTracker) Unwrap() tracker.Tracker { return u.Tracker }

func (u *unreadableTracker) Get(ctx context.Context, key string) (tracker.Issue, error) {
	if err := u.err.Load(); err != nil {
		return tracker.Issue{}, *err
	}
	return u.Tracker.Get(ctx, key)
}

// TestNothingIsPublishedUnseen: while the tracker is unavailable, publishing waits, since the issue may have been closed. An
// issue file that cannot be read delays nothing.
func TestNothingIsPublishedUnseen(t *testing.T) {
	t.Parallel()
	for _, how := range []journal.Publish{journal.PublishBranch, journal.PublishMerge} {
		for why, c := range map[string]struct {
			err   error
			waits bool
		}{
			"away":    {&tracker.UnavailableError{Err: errors.New("rate limit")}, true},
			"refused": {&tracker.RefusedError{Err: errors.New("401")}, true},
			"a file":  {errors.New("permission denied"), false},
		} {
			t.Run(string(how)+" "+why, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, commits)
				remote := f.withRemote()
				blind := &unreadableTracker{Tracker: f.Config.Run.Tracker}
				f.Config.Run.Publish, f.Config.Run.Tracker = how, blind
				f.issue("a")
				f.onStage(journal.StageVerify, func(journal.Record) { blind.err.Store(&c.err) })
				refs := func() string {
					return f.git(remote, "for-each-ref", "refs/heads") + f.git(f.repo, "for-each-ref", "refs/heads/"+f.git(f.repo, "branch", "--show-current"))
				}
				before := refs()
				s := f.sweep(t.Context())
				if r := f.only(s); (r.Published == "") != c.waits || r.Ended.IsZero() != c.waits || errors.Is(s.Unavailable, c.err) != c.waits {
					t.Errorf("%+v: %v", r.State, s.Unavailable)
				}
				if (refs() == before) != c.waits {
					t.Errorf("before: %s\nnow: %s", before, refs())
				}
				f.onStage(journal.StageVerify, func(journal.Record) {})
				blind.err.Store(nil)
				f.sweep(t.Context())
				if runs := f.runs("a"); len(runs) != 1 || runs[0].Published == "" || runs[0].Verdict.Outcome != journal.Succeeded || refs() == before {
					t.Errorf("afterwards: %+v", runs)
				}
				f.clean()
			})
		}
	}
}
