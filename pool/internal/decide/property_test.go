package decide

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

func drawFault(t *rapid.T, label string) *journal.Fault {
	if rapid.Bool().Draw(t, label) {
		return nil
	}
	return &journal.Fault{Kind: rapid.SampledFrom(faults).Draw(t, label+" kind"), Text: rapid.String().Draw(t, label+" text")}
}

func drawChecks(t *rapid.T, label string) []loop.Check {
	return rapid.SampledFrom([][]loop.Check{nil, green, red, hung}).Draw(t, label)
}

func drawFacts(t *rapid.T) journal.Facts {
	f := journal.Facts{
		Kind:   rapid.SampledFrom([]journal.Kind{journal.KindIssue, journal.KindPrompt, journal.KindCommand}).Draw(t, "kind"),
		Limits: limits, Attempt: rapid.IntRange(1, 5).Draw(t, "attempt"), Failures: rapid.IntRange(0, 12).Draw(t, "failures"),
		Stop: rapid.SampledFrom(append(stops, "")).Draw(t, "stop"), StoppedStage: rapid.SampledFrom(append(journal.Stages(), "", "", "")).Draw(t, "cut"),
		Open: drawFault(t, "open"), End: rapid.SampledFrom(append(ends, "")).Draw(t, "end"), EndDetail: rapid.String().Draw(t, "detail"),
		Optional: rapid.Bool().Draw(t, "optional"), Commits: rapid.IntRange(0, 2).Draw(t, "commits"), Unchanged: rapid.Bool().Draw(t, "unchanged"),
		Gate: drawChecks(t, "gate"), GateRan: rapid.Bool().Draw(t, "gate ran"),
		Policy:   rapid.SliceOfN(rapid.String(), 0, 2).Draw(t, "policy"),
		Conflict: rapid.SampledFrom([]string{"", "", "c"}).Draw(t, "conflict"), Publish: drawFault(t, "publish"),
		Tries: rapid.IntRange(0, MaxTries).Draw(t, "tries"), Done: rapid.Bool().Draw(t, "done"), Gone: rapid.Bool().Draw(t, "gone"), CompletedAt: now,
	}
	if rapid.Bool().Draw(t, "failure") {
		f.Failure = &agents.Failure{
			Class:   rapid.SampledFrom([]agents.Class{agents.RateLimit, agents.Overload, agents.Auth, agents.NotStarted, agents.OtherFailure}).Draw(t, "class"),
			ResetAt: now.Add(time.Duration(rapid.IntRange(-60, 60).Draw(t, "reset")) * time.Minute),
		}
	}
	if rapid.Bool().Draw(t, "exit") {
		f.Exit = code(rapid.IntRange(0, 1).Draw(t, "status"))
	}
	if rapid.Bool().Draw(t, "verify") {
		f.Verify = &journal.Verification{Checks: drawChecks(t, "verified"), Setup: rapid.Bool().Draw(t, "setup"), Rebase: rapid.Bool().Draw(t, "rebased")}
	}
	f.Files = rapid.SampledFrom([]journal.GateFiles{"", journal.GateFilesReport, journal.GateFilesRequire, journal.GateFilesBlock}).Draw(t, "gate files")
	if rapid.Bool().Draw(t, "watch") {
		f.Watch = &journal.Watch{Removed: rapid.IntRange(0, 1).Draw(t, "removed")}
		if rapid.Bool().Draw(t, "canary") {
			f.Watch.Canaries = []journal.Canary{{Path: "p", Noticed: rapid.Bool().Draw(t, "noticed")}}
		}
		if rapid.Bool().Draw(t, "with the base's files") {
			f.Watch.Base = &journal.Verification{Checks: drawChecks(t, "base checks")}
		}
	}
	if rapid.Bool().Draw(t, "review") {
		f.Review = &journal.Review{Accepted: rapid.Bool().Draw(t, "accepted"), Failed: rapid.SampledFrom([]string{"", "hung"}).Draw(t, "review failed")}
	}
	return f
}

// TestDecideProperties checks the properties of every verdict, whatever the facts.
func TestDecideProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t)
		before := f
		v := Verdict(f)
		if twice := Verdict(f); !reflect.DeepEqual(v, twice) || !reflect.DeepEqual(before, f) {
			t.Fatalf("not pure: %+v, then %+v", v, twice)
		}
		if !slices.Contains(journal.Outcomes(), v.Outcome) {
			t.Fatalf("outcome %q", v.Outcome)
		}
		if v.Unattended() != (v.Outcome == journal.Succeeded && v.Reason.Code == "") || v.Outcome != journal.Succeeded && v.Reason.Code == "" {
			t.Fatalf("%s for reason %q", v.Outcome, v.Reason.Code)
		}
		if v.Unattended() && f.Kind != journal.KindCommand && f.Review.Refused() {
			t.Fatal("nobody has to look at what no review has accepted")
		}
		if v.Outcome == journal.Succeeded && f.Kind != journal.KindCommand && f.Watch.Disabled() != "" {
			t.Fatalf("a success with a gate that is disabled")
		}
		uses := v.Outcome == journal.Failed || v.Outcome == journal.GateFailed
		always := slices.Contains([]journal.Outcome{
			journal.Succeeded, journal.NoChange, journal.OverBudget, journal.NeedsInfo, journal.PolicyBlocked,
		}, v.Outcome) && v.Reason.Code != journal.ReasonCap || v.Reason.Code == journal.ReasonCrash && f.Failures+1 >= MaxFailures
		switch {
		case v.Counted && !uses:
			t.Fatalf("%s uses up an attempt", v.Outcome)
		case v.Final && !v.RetryAt.IsZero():
			t.Fatalf("final, and tried again at %s", v.RetryAt)
		case v.Final != always && !uses:
			t.Fatalf("%s: final is %v", v.Outcome, v.Final)
		case uses && v.Final == v.RetryAt.After(f.CompletedAt):
			t.Fatalf("%s: final is %v, and it is tried again at %s", v.Outcome, v.Final, v.RetryAt)
		case v.Counted && f.Attempt >= f.Limits.MaxAttempts && !v.Final:
			t.Fatalf("attempt %d of %d is not the last", f.Attempt, f.Limits.MaxAttempts)
		case v.RetryAt.After(f.CompletedAt.Add(f.Limits.BackoffMax)) && v.Outcome != journal.AgentUnavailable:
			t.Fatalf("waits until %s", v.RetryAt)
		}

		// Later facts never change the outcome of published work.
		f.Done = true
		published := Verdict(f)
		later := drawFacts(t)
		f.Gone, f.Stop, f.StoppedStage, f.StopBy, f.Unfit, f.Open = later.Gone, later.Stop, later.StoppedStage, later.StopBy, later.Unfit, later.Open
		f.Policy, f.Conflict, f.Publish = later.Policy, later.Conflict, later.Publish
		if still := Verdict(f); still.Outcome != published.Outcome || still.Reason != published.Reason {
			t.Fatalf("published as %+v, then %+v", published, still)
		}
	})
}
