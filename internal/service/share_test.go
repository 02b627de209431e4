package service

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		total int
		list  []demand
		want  []int
	}{
		{"no limit", 0, []demand{{limit: 3}, {limit: 2, busy: 2}}, []int{3, 2}},
		{"evenly", 4, []demand{{limit: 4, usable: 9}, {limit: 4, usable: 9}}, []int{2, 2}},
		{"up to its own limit", 6, []demand{{limit: 1, usable: 9}, {limit: 9, usable: 9}}, []int{1, 5}},
		{"up to what it could use", 6, []demand{{limit: 9, usable: 2}, {limit: 9, usable: 9}}, []int{2, 4}},
		{"more projects than slots", 1, []demand{{limit: 4, usable: 9}, {limit: 4, usable: 9}}, []int{1, 0}},
		{"who has waited comes first", 1, []demand{{limit: 4, usable: 9}, {limit: 4, usable: 9, waited: 2}, {limit: 4, usable: 9, waited: 1}}, []int{0, 1, 0}},
		{"what is free goes to who has less", 3, []demand{{limit: 4, busy: 2, usable: 9}, {limit: 4, usable: 9, waited: 1}}, []int{2, 1}},
		{"the next that is free goes to who has less", 3, []demand{{limit: 4, busy: 3, usable: 9}, {limit: 4, usable: 9, waited: 1}}, []int{2, 0}},
		{"all are worked by one", 2, []demand{{limit: 4, busy: 2, usable: 9}, {limit: 4}}, []int{2, 0}},
		{"more is on than there are slots", 1, []demand{{limit: 4, busy: 3, usable: 9}, {limit: 4}}, []int{1, 0}},
		{"who can use none comes last", 3, []demand{{limit: 4}, {limit: 4, busy: 1, usable: 9}}, []int{0, 3}},
		{"none could use more", 3, []demand{{limit: 4}, {limit: 4, busy: 1}}, []int{1, 2}},
		{"paused", 4, []demand{{busy: 1}, {limit: 4, usable: 9}}, []int{0, 3}},
	} {
		if got := share(c.total, c.list); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Whatever the demands, the slots never exceed the total, and no slot stays unused that a project could use.
func TestShareHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 9).Draw(t, "total")
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) demand {
			return demand{rapid.IntRange(0, 5).Draw(t, "limit"), rapid.IntRange(0, 5).Draw(t, "busy"), rapid.IntRange(0, 5).Draw(t, "wants"), rapid.IntRange(0, 5).Draw(t, "waited")}
		}), 0, 6).Draw(t, "list")
		busy, reach, wanted := 0, 0, false
		out := share(total, list)
		for i, d := range list {
			busy += d.busy
			reach += max(out[i], d.busy)
			wanted = wanted || out[i] < d.limit
			if out[i] > d.limit {
				t.Fatalf("%v: %d slots beyond the limit of %v", list, out[i], d)
			}
		}
		if reach > max(total, busy) {
			t.Fatalf("%v: %v may work %d at the same time", list, out, reach)
		}
		if wanted && reach < total {
			t.Fatalf("%v: %v leaves slots free", list, out)
		}
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		poll     time.Duration
		failures int
		r        float64
		want     time.Duration
	}{
		{0, 0, 0.5, time.Minute},
		{10 * time.Second, 0, 0, 8 * time.Second},
		{10 * time.Second, 1, 1, 12 * time.Second},
		{10 * time.Second, 3, 0.5, 40 * time.Second},
		{10 * time.Second, 1000, 0.5, pauseMax},
		{time.Hour, 5, 0.5, time.Hour},
	} {
		if got := pause(c.poll, c.failures, c.r); got != c.want {
			t.Errorf("%v: %s", c, got)
		}
	}
}
