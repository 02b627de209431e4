package nearest_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/nearest"
)

func TestTo(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"paralel": "parallel", "lables": "labels", "iteration-timout": "iteration-timeout", "max": "max-iterations",
		"completion": "completion-signal", "Labels": "labels", "labels-all": "labels", "BASE": "base", "label-colours": "label-colour",
		"": "", "xyzzy": "", "q": "", strings.Repeat("a", 100): "",
	} {
		got := nearest.To(name, []string{"base", "parallel", "labels", "label", "label-colour", "max-iterations", "iteration-timeout", "completion-signal"})
		if got != want {
			t.Errorf("the nearest to %q is %q, want %q", name, got, want)
		}
	}
}
