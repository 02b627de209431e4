package look

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/scaffold"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// The reason for init's sample says to write an issue of one's own.
func TestWhyNotTheSample(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{scaffold.SampleTitle: "`ralph new 'TITLE'`", "Fix login": "`ralph retry example`"} {
		s := backlog.Skipped{
			Issue: tracker.Issue{Key: "example", Title: title}, Skip: journal.Skip{Code: journal.SkipUnfit, Unfit: tracker.Unfit{Code: tracker.UnfitLacks}},
		}
		if got := WhyNot(s, func(key string) string { return key }); !strings.Contains(got, want) {
			t.Errorf("%s: %s", title, got)
		}
	}
}
