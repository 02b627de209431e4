package parking

import (
	"slices"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Waits returns the parked agents among all; none if one of all is not parked.
func Waits(all []agents.Choice, parked []journal.Parked) []journal.Parked {
	for _, choice := range all {
		if !slices.ContainsFunc(parked, func(p journal.Parked) bool { return p.Choice() == choice }) {
			return nil
		}
	}
	return slices.DeleteFunc(slices.Clone(parked), func(p journal.Parked) bool { return !slices.Contains(all, p.Choice()) })
}
