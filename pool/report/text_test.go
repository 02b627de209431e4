package report

import (
	"testing"
	"time"
)

// A duration is the same in every place that shows it.
func TestRounded(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]time.Duration{
		-time.Second: 0, 1260 * time.Millisecond: 1300 * time.Millisecond, 9960 * time.Millisecond: 10 * time.Second,
		43900 * time.Millisecond: 44 * time.Second, 59600 * time.Millisecond: time.Minute, 90*time.Minute + 31*time.Second: 91 * time.Minute,
	} {
		if got := Rounded(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

func TestLastBytes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abc", 2, "bc"}, {"a☃b", 3, "b"}, {"", 5, ""}, {"☃", 0, ""}} {
		if got := LastBytes(c.s, c.n); got != c.want {
			t.Errorf("last %d of %q: %q", c.n, c.s, got)
		}
	}
}
