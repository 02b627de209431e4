package tracker

// DefaultPriorities are the labels that many projects use, with their priorities.
func DefaultPriorities() map[string]int {
	table := map[string]int{"P0": 1, "P1": 2, "P2": 3, "P3": 4, "P4": 5}
	for n, word := range []string{"critical", "high", "medium", "low"} {
		for _, separator := range []string{"::", ":", ": ", "/"} {
			table["priority"+separator+word] = n + 1
		}
		table["priority::"+string(rune('1'+n))] = n + 1 // GitLab's own scale
	}
	return table
}

// PriorityOf is the most urgent priority that the table gives one of the labels; 0 when it gives none.
func PriorityOf(labels []string, table map[string]int) int {
	best := 0
	for name, p := range table {
		if p > 0 && (best == 0 || p < best) && containsFold(labels, name) {
			best = p
		}
	}
	return best
}
