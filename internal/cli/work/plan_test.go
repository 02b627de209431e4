package work

import (
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
)

func TestSweepsWaitForTheFirstAgent(t *testing.T) {
	t.Parallel()
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	parked := func(agent string, until time.Time) journal.Parked { return journal.Parked{Agent: agent, Until: until} }
	for name, c := range map[string]struct {
		parked []journal.Parked
		want   time.Time
	}{
		"none":         {nil, time.Time{}},
		"one of two":   {[]journal.Parked{parked("a", late)}, time.Time{}},
		"another":      {[]journal.Parked{parked("a", late), parked("c", early)}, time.Time{}},
		"both":         {[]journal.Parked{parked("a", late), parked("b", early)}, early},
		"for a person": {[]journal.Parked{parked("a", time.Time{}), parked("b", time.Time{})}, time.Time{}},
		"one of each":  {[]journal.Parked{parked("a", time.Time{}), parked("b", late)}, late},
	} {
		if got := backAt([]agents.Choice{{Agent: "a"}, {Agent: "b"}}, c.parked); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
