package report_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/pool/report"
)

// A conflict has one solution, whoever reads the report.
func TestNextAfterConflict(t *testing.T) {
	t.Parallel()
	const command = "git rebase --rebase-merges --onto main 1234567 ralph/a"
	for local, want := range map[bool]string{
		true:  "solve the conflict after `" + command + "`; then `git switch main` and `ralph merge a`.",
		false: "has to solve the conflict after `" + command + "`, and to merge the branch.",
	} {
		r := journal.Record{Run: journal.Run{Key: "a", Branch: "ralph/a", Base: "main", Host: "h"}}
		r.Verdict = journal.Verdict{Outcome: journal.Failed, Final: true, Reason: journal.Reason{Code: journal.ReasonConflict}}
		r.Facts.Solve, r.Facts.Hopeless = []string{command}, true
		got := report.Final(report.Input{Record: r, Secrets: redact.New(), Steps: report.Steps{Local: local, Hints: hints}})
		if !strings.Contains(got, want) {
			t.Errorf("local %t: %q", local, got)
		}
	}
}
