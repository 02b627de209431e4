package gitlab

import "github.com/ralph-pool/ralph/tracker"

// defaultPriorities are the labels that many projects use.
func defaultPriorities() map[string]int {
	table := map[string]int{"P0": 1, "P1": 2, "P2": 3, "P3": 4, "P4": 5}
	for n, word := range []string{"critical", "high", "medium", "low"} {
		for _, between := range []string{"::", ":", ": ", "/"} {
			table["priority"+between+word] = n + 1
		}
	}
	for n := range 4 {
		table["priority::"+string(rune('1'+n))] = n + 1 // GitLab's own scale
	}
	return table
}

// priority is the most urgent that a label gives; 0 when none does.
func priority(labels []string, table map[string]int) int {
	best := 0
	for name, p := range table {
		for _, l := range labels {
			if p > 0 && (best == 0 || p < best) && tracker.SameLabel(l, name) {
				best = p
			}
		}
	}
	return best
}
