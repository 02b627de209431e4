package tracker

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// DefaultPriorities returns the priorities of labels that many projects use.
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

// PriorityOf returns the most urgent priority in the table for these labels; 0 if the table has none of them.
func PriorityOf(labels []string, table map[string]int) int {
	best := 0
	for name, p := range table {
		if p > 0 && (best == 0 || p < best) && containsFold(labels, name) {
			best = p
		}
	}
	return best
}

// ParseLabelNumbers parses lines "LABEL=NUMBER" into a table, which is nil without lines. Lines that ParseLabelNumber rejects are
// skipped. If two lines have the same label, twice is that label; case is ignored, as forges do.
func ParseLabelNumbers(list []string) (table map[string]int, twice string) {
	for _, s := range list {
		label, n, err := ParseLabelNumber(s)
		if err != nil {
			continue
		}
		for known := range table {
			if strings.EqualFold(known, label) {
				twice = label
			}
		}
		if table == nil {
			table = map[string]int{}
		}
		table[label] = n
	}
	return table, twice
}

// ParseLabelNumber parses one line "LABEL=NUMBER". A label may contain equals signs.
func ParseLabelNumber(s string) (label string, n int, err error) {
	at := strings.LastIndexByte(s, '=')
	if at < 0 {
		return "", 0, errors.New("is not LABEL=NUMBER, such as urgent=1")
	}
	number, err := strconv.ParseInt(s[at+1:], 10, 32)
	if err != nil || number < 1 {
		return s[:at], 0, fmt.Errorf("has no whole number from 1 to %d after the equals sign", math.MaxInt32)
	}
	return s[:at], int(number), nil
}
