package homes

import (
	"strconv"
	"testing"
)

// The number of remembered names and inputs is bounded, however many commits there are and whatever is in them.
func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	h, first, _, _ := homes(t)
	h.names = map[string]homeName{}
	for n := range maxNames {
		h.names[strconv.Itoa(n)] = homeName{}
	}
	for n := range 2 * maxUnknown {
		h.Inputs = append(h.Inputs, "missing-"+strconv.Itoa(n))
	}
	n, err := h.name(t.Context(), first, "")
	if err != nil || len(h.names) != 1 || len(n.unknown) != maxUnknown {
		t.Errorf("%d names, and %d unknown inputs; %v", len(h.names), len(n.unknown), err)
	}
}
