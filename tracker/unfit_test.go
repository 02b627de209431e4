package tracker

import "testing"

func TestUnfit(t *testing.T) {
	t.Parallel()
	require, exclude := []string{"pick", "area"}, []string{"wontfix"}
	fit := Issue{Open: true, Labels: []string{"Pick", "area"}}
	with := func(change func(*Issue)) Issue {
		i := fit
		change(&i)
		return i
	}
	const seen = "people who cannot read it could see its branch and request: make the issue public or the project private, or do it yourself"
	for _, c := range []struct {
		issue          Issue
		want           Unfit
		text, sentence string
	}{
		{Issue{}, Unfit{Code: UnfitClosed}, "closed", "the issue is closed"},
		{with(func(i *Issue) { i.Labels = i.Labels[:1] }), Unfit{UnfitLacks, "area"}, "lacks label area", "the issue lacks label area"},
		{
			with(func(i *Issue) { i.Labels = append(i.Labels, "WontFix") }), Unfit{UnfitExcluded, "wontfix"},
			"carries excluded label wontfix", "the issue carries excluded label wontfix",
		},
		{
			with(func(i *Issue) { i.Confidential = true }), Unfit{Code: UnfitConfidential},
			"confidential, and " + seen, "the issue is confidential, and " + seen,
		},
		{with(func(i *Issue) { i.Taken = "#3 by ada closes it" }), Unfit{UnfitTaken, "#3 by ada closes it"}, "#3 by ada closes it", "somebody else works on the issue: #3 by ada closes it"},
		{with(func(i *Issue) { i.BlockedBy = []Blocker{{Key: "a"}, {Key: "b", Open: true}} }), Unfit{UnfitBlocked, "b"}, "blocked by b", "the issue is blocked by b"},
	} {
		if got := c.issue.Unfit(require, exclude); got != c.want || got.String() != c.text || got.Sentence() != c.sentence {
			t.Errorf("%v: %q, %q", got, got.String(), got.Sentence())
		}
	}
	if got := fit.Unfit(require, exclude); got != (Unfit{}) || got.String() != "" {
		t.Errorf("a fit issue: %v", got)
	}
	for u, want := range map[Unfit]string{{Code: UnfitGone}: "the issue is gone", {UnfitHandedOver, "x"}: "the issue carries label x"} {
		if got := u.Sentence(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
