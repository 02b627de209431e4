package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	steps := report.Steps{NeedsHuman: "needs-human", Commands: true}
	failed := journal.Record{
		Run: journal.Run{ID: "r1", Key: "7", Host: "alpha"},
		State: journal.State{Verdict: journal.Verdict{
			Outcome: journal.GateFailed, Final: true, Reason: journal.Reason{Code: journal.ReasonVerify, Detail: "make @team `x`"},
		}},
	}
	ended := journal.Tally{Run: "r1", Host: "alpha", Outcome: journal.GateFailed, At: at, Final: true}
	for name, c := range map[string]struct {
		last   journal.Record
		tally  journal.Tally
		holder string
		want   []string
	}{
		"nothing":      {want: []string{"No run of this issue has ended yet."}},
		"a run is on":  {holder: "beta", want: []string{"A run is active on machine `beta`.", "No run of this issue has ended yet."}},
		"a failure":    {failed, ended, "", []string{"**gate-failed**", "make @ team", "Next: remove the label `needs-human` (or comment `/ralph retry`)"}},
		"another host": {journal.Record{}, ended, "", []string{"`alpha`", "**gate-failed**", "Its report says what comes next."}},
		"asked":        {failed, ended.Restart(journal.Asked{ID: "1", By: "ada"}), "", []string{"Another run was asked for by `ada`"}},
	} {
		got := report.Explain(report.Input{Record: c.last, Steps: steps, Secrets: redact.New()}, c.tally, c.holder)
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: lacks %q:\n%s", name, w, got)
			}
		}
	}
}

func TestUnknownCommand(t *testing.T) {
	t.Parallel()
	for verb, want := range map[tracker.Verb]string{
		"":         "The commands are `/ralph retry`,",
		"@team":    "There is no command `@ team`.",
		"close#1`": "There is no command ``",
	} {
		if got := report.Unknown(verb); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") || strings.Contains(got, "@team") {
			t.Errorf("Unknown(%q) = %q", verb, got)
		}
	}
}
