package journal_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

// A log entry has an event's content and no memory addresses.
func TestEventInALog(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]journal.Event{
		`event.kind=ended event.text="on a branch" event.outcome=failed event.reason=publish-failed event.detail=denied event.elapsed_seconds=2`: {
			Seq: 7, Run: "r", Kind: journal.EventEnded, Text: "on a branch", Outcome: journal.Failed, Elapsed: 2,
			Reason: &journal.Reason{Code: journal.ReasonPublish, Detail: "denied"},
		},
		`event.kind=gate event.iteration=3 event.stage=work event.check=false event.exit=1`: {
			Kind: journal.EventGate, Iteration: 3, Stage: journal.StageWork, Check: &loop.Check{Command: "false", ExitCode: 1},
		},
		`event.kind=skipped event.skip=busy event.detail=label`: {
			Kind: journal.EventSkipped, Skip: &journal.Skip{Code: journal.SkipBusy, Detail: "label"},
		},
	} {
		var out strings.Builder
		slog.New(slog.NewTextHandler(&out, nil)).Info("event", "event", e)
		if _, got, _ := strings.Cut(strings.TrimSpace(out.String()), "msg=event "); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
