package config

import (
	"errors"
	"strconv"
	"strings"
)

// Priorities are what priority-labels says, by label, 1 the most urgent; nil when it says nothing.
func (c Config) Priorities() map[string]int {
	var table map[string]int
	for _, s := range c.PriorityLabels {
		if label, priority, err := priorityLabel(s); err == nil { // the configuration has checked it
			if table == nil {
				table = map[string]int{}
			}
			table[label] = priority
		}
	}
	return table
}

// priorityLabel reads "LABEL=NUMBER". A label may have equals signs itself.
func priorityLabel(s string) (label string, priority int, err error) {
	at := strings.LastIndexByte(s, '=')
	if at < 0 {
		return "", 0, errors.New("is not LABEL=NUMBER, such as urgent=1")
	}
	label = s[:at]
	if err := checkLabel(label); err != nil {
		return "", 0, errors.New("has a label that " + err.Error())
	}
	n, err := strconv.ParseInt(s[at+1:], 10, 32)
	if err != nil || n < 1 {
		return "", 0, errors.New("has no whole number from 1 on after the equals sign; 1 is the most urgent")
	}
	return label, int(n), nil
}

func checkPriorityLabel(s string) error {
	_, _, err := priorityLabel(s)
	return err
}

// labelTwice returns a label that priority-labels gives two priorities; empty when there is none. Forges do not tell
// labels apart by case.
func (c Config) labelTwice() string {
	seen := map[string]bool{}
	for _, s := range c.PriorityLabels {
		label, _, err := priorityLabel(s)
		if err != nil {
			continue
		}
		if seen[strings.ToLower(label)] {
			return label
		}
		seen[strings.ToLower(label)] = true
	}
	return ""
}
