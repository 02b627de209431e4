package feedback_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/pool/feedback"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

func TestEachPromptKeyHasAValue(t *testing.T) {
	t.Parallel()
	values, _ := feedback.PromptFacts(tracker.Issue{}, journal.Run{})
	maps.Copy(values, loop.Config{}.PromptVars(1, ""))
	values["issue"] = "" // Render makes it
	if got, want := slices.Sorted(maps.Keys(values)), prompt.Keys(); !slices.Equal(got, want) {
		t.Errorf("values are given for %q, and the keys are %q", got, want)
	}
}
