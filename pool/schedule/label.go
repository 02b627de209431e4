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

// Limits say how many issues with a label may be worked at the same time, by the label in lower case.
type Limits map[string]int

// ParseLimits reads a list of LABEL=NUMBER; lines that cannot be read are left out. twice is a label that stands in it twice.
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

// Check refuses limits that would let nothing begin.
func (l Limits) Check() error {
	for _, label := range slices.Sorted(maps.Keys(l)) {
		if l[label] < 1 {
			return fmt.Errorf("the limit of label %q must be at least 1", label)
		}
	}
	return nil
}

// of are the labels of a list that have a limit.
func (l Limits) of(labels []string) (limited []string) {
	for _, label := range slices.Sorted(maps.Keys(l)) {
		if slices.ContainsFunc(labels, func(have string) bool { return strings.EqualFold(have, label) }) {
			limited = append(limited, label)
		}
	}
	return limited
}

// busy counts, by label, what is on.
type busy map[string]int

func (b busy) add(labels []string) {
	for _, l := range labels {
		b[l]++
	}
}

// full is the first of the labels of which as many are on as may be.
func (b busy) full(l Limits, labels []string) (label string, is bool) {
	at := slices.IndexFunc(labels, func(label string) bool { return b[label] >= l[label] })
	if at < 0 {
		return "", false
	}
	return labels[at], true
}
