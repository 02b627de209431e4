package report_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
)

// A reviewer's text is quoted and redacted wherever people read it, most severe finding first.
func TestHostileReview(t *testing.T) {
	t.Parallel()
	for _, h := range corpus() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			in := hostileInput(h.text)
			in.Record.Facts = journal.Facts{ReviewSpend: journal.ReviewSpend{Usage: agents.Usage{Input: 5, Output: 1}}, Review: &journal.Review{
				Agent: "a", Round: 2, Tip: "0123456789abcdef",
				Findings: []journal.Finding{{Severity: journal.SeverityMinor, Text: "small"}, {Severity: journal.SeverityMajor, File: h.text, Line: 3, Text: h.text}},
			}}
			text := report.Final(in)
			clean := in.Secrets.Clean(h.text)
			major := tracker.QuoteLine("major, "+clean+":3: "+strings.Join(strings.Fields(clean), " "), 2000)
			if !strings.Contains(text, "- "+major+"\n- `minor: small`\n") || strings.Contains(text, secret) {
				t.Errorf("no %q:\n%s", major, text)
			}
			if !strings.Contains(text, "\n- Of this for the review: cost unknown; 5 tokens in, 0 from cache, 1 out\n") {
				t.Errorf("no cost of its own:\n%s", text)
			}
			in.Record.Facts.Review = &journal.Review{Failed: h.text}
			if text := report.Final(in); !strings.Contains(text, "not reviewed: "+tracker.QuoteLine(clean, 300)+".\n") || strings.Contains(text, secret) {
				t.Errorf("failed:\n%s", text)
			}
		})
	}
}

func TestReviewInOneLine(t *testing.T) {
	t.Parallel()
	some := []journal.Finding{{}, {}}
	for want, r := range map[string]journal.Review{
		"accepted": {Accepted: true}, "accepted, with 2 remarks": {Accepted: true, Findings: some}, "not accepted": {},
		"not accepted, 2 findings": {Findings: some}, "not reviewed: x": {Failed: "x", Findings: some},
	} {
		if got := report.Review(&r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
