package schedule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
)

// Limits has, by label in lower case, the maximum number of issues that are worked at the same time.
type Limits map[string]int

// ParseLimits reads a list of LABEL=NUMBER and skips invalid entries.
func ParseLimits(list []string) Limits {
	l := Limits{}
	numbers, _ := tracker.ParseLabelNumbers(list)
	for label, n := range numbers {
		l[strings.ToLower(label)] = n
	}
	return l
}

// Check returns an error for a limit below 1, with which nothing would begin.
func (l Limits) Check() error {
	for _, label := range slices.Sorted(maps.Keys(l)) {
		if l[label] < 1 {
			return fmt.Errorf("the limit of label %q must be at least 1", label)
		}
	}
	return nil
}

// limitedAmong returns the labels of a list that have a limit.
func (l Limits) limitedAmong(labels []string) (limited []string) {
	for _, label := range slices.Sorted(maps.Keys(l)) {
		if slices.ContainsFunc(labels, func(have string) bool { return strings.EqualFold(have, label) }) {
			limited = append(limited, label)
		}
	}
	return limited
}

// labelCounts counts, by label, the issues that are being worked.
type labelCounts map[string]int

func (b labelCounts) add(labels []string) {
	for _, l := range labels {
		b[l]++
	}
}

// full returns the first of the labels whose limit is reached.
func (b labelCounts) full(l Limits, labels []string) (label string, is bool) {
	at := slices.IndexFunc(labels, func(label string) bool { return b[label] >= l[label] })
	if at < 0 {
		return "", false
	}
	return labels[at], true
}
