package github

import "github.com/ralph-pool/ralph/tracker"

// defaultPriorities are the labels that many projects use.
func defaultPriorities() map[string]int {
	return map[string]int{
		"P0": 1, "P1": 2, "P2": 3, "P3": 4, "P4": 5,
		"priority: critical": 1, "priority: high": 2, "priority: medium": 3, "priority: low": 4,
		"priority:critical": 1, "priority:high": 2, "priority:medium": 3, "priority:low": 4,
		"priority/critical": 1, "priority/high": 2, "priority/medium": 3, "priority/low": 4,
	}
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
