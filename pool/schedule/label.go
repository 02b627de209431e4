package schedule

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Limits has, by label in lower case, the maximum number of issues that are worked at the same time.
type Limits map[string]int

// ParseLimits reads a list of LABEL=NUMBER and skips invalid entries. twice is a label that the list has twice.
func ParseLimits(list []string) (l Limits, twice string) {
	l = Limits{}
	for _, s := range list {
		label, n, err := ParseLimit(s)
		if err != nil {
			continue
		}
		if _, known := l[strings.ToLower(label)]; known {
			twice = label
		}
		l[strings.ToLower(label)] = n
	}
	return l, twice
}

// ParseLimit reads LABEL=NUMBER.
func ParseLimit(s string) (label string, n int, err error) {
	at := strings.LastIndexByte(s, '=')
	if at < 0 {
		return "", 0, errors.New("is not LABEL=NUMBER, such as database=1")
	}
	most, err := strconv.ParseInt(s[at+1:], 10, 32)
	if err != nil || most < 1 {
		return s[:at], 0, fmt.Errorf("has no whole number from 1 to %d after the equals sign", math.MaxInt32)
	}
	return s[:at], int(most), nil
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
