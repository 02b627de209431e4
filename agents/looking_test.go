package agents

import (
	"slices"
	"testing"
)

// Every agent with modes has one for looking, and none in which it acts without asking.
func TestLooking(t *testing.T) {
	t.Parallel()
	for _, a := range Builtin() {
		d := a.Describe()
		if (d.ReadOnlyMode == "") != (len(d.Modes) == 0) || d.ReadOnlyMode != "" && !slices.Contains(d.Modes, d.ReadOnlyMode) {
			t.Errorf("%s: %q of %q", a.Name(), d.ReadOnlyMode, d.Modes)
		}
	}
}
