package pool_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// TestTrackerFailsAtEveryCall fails one call of the tracker, whichever it is, in three ways: it is unavailable once, it
// does not know the issue once, and it refuses that kind of call until people have seen to it. Afterwards the work is
// published exactly once, or handed to a person; nothing is held and nothing is reported twice.
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

// outage sweeps while one call fails, and then until nothing is left to do. It returns the kind of the call; empty when
// there were not as many.
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
