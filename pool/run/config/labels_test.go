package config_test

import (
	"testing"

	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/tracker"
)

// If one label had two meanings, an issue would be worked forever, or never again.
func TestCheckLabels(t *testing.T) {
	t.Parallel()
	pick := []string{"no-human", "bug"}
	for name, c := range map[string]struct {
		labels           tracker.StateLabels
		require, exclude []string
		want             string
	}{
		"defaults":                {require: pick},
		"all of them":             {labels: tracker.StateLabels{Claimed: "claimed", Failed: "failed"}, require: pick, exclude: []string{"wip", "needs-info", "in-review"}},
		"in review is picked up":  {labels: tracker.StateLabels{InReview: "No-Human "}, require: pick, want: `Labels.InReview is "No-Human ", which is also in Require; choose another`},
		"a default is picked up":  {require: []string{"in-review"}, want: `Labels.InReview is "in-review", which is also in Require; choose another`},
		"claimed is picked up":    {labels: tracker.StateLabels{Claimed: "bug"}, require: pick, want: `Labels.Claimed is "bug", which is also in Require; choose another`},
		"a question is a failure": {labels: tracker.StateLabels{NeedsInfo: "x", NeedsHuman: "X"}, require: pick, want: `Labels.NeedsInfo and Labels.NeedsHuman are both "x"; choose another`},
		"another's default":       {labels: tracker.StateLabels{Failed: "In-Review"}, require: pick, want: `Labels.Failed and Labels.InReview are both "In-Review"; choose another`},
		"claimed is excluded":     {labels: tracker.StateLabels{Claimed: "busy"}, require: pick, exclude: []string{"Busy"}, want: `Labels.Claimed is "busy", which is also in Exclude; choose another`},
		"failed is excluded":      {labels: tracker.StateLabels{Failed: "again"}, require: pick, exclude: []string{"again"}, want: `Labels.Failed is "again", which is also in Exclude; choose another`},
		"all are excluded":        {require: pick, exclude: []string{"wip", "Bug"}, want: `Require and Exclude both have "Bug": no issue would be worked`},
		"a blank one":             {labels: tracker.StateLabels{NeedsHuman: " "}, require: pick, want: `Labels.NeedsHuman is blank`},
		"no name":                 {require: []string{"no-human", " "}, want: `Require has an empty label`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := config.CheckLabels(c.labels, c.require, c.exclude)
			if got := text(err); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
