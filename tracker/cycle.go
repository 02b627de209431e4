package tracker

import (
	"fmt"
	"slices"
	"strings"
)

// Cycle is a cycle of open issues, by key: each is blocked by the next, and the last by the first. None of them can start.
type Cycle []string

// Cycles finds cycles among open issues that block each other. An issue is in at most one of them.
func Cycles(issues []Issue) (found []Cycle) {
	waits := map[string][]string{}
	for _, i := range issues {
		for _, b := range i.BlockedBy {
			if b.Open {
				waits[i.Key] = append(waits[i.Key], b.Key)
			}
		}
	}
	const (
		onPath = 1
		done   = 2
	)
	state := map[string]int{}
	var path []string
	var walk func(key string)
	walk = func(key string) {
		state[key], path = onPath, append(path, key)
		for _, next := range waits[key] {
			switch state[next] {
			case 0:
				walk(next)
			case onPath:
				ring := path[slices.Index(path, next):]
				taken := func(k string) bool { return state[k] == done } // part of another cycle
				if !slices.ContainsFunc(ring, taken) {
					found = append(found, slices.Clone(ring))
					for _, k := range ring {
						state[k] = done
					}
				}
			}
		}
		state[key], path = done, path[:len(path)-1]
	}
	for _, i := range issues {
		if state[i.Key] == 0 {
			walk(i.Key)
		}
	}
	return found
}

// maxNamedBlockers is the maximum number of blockers that are named. Trackers look up no more for one text.
const maxNamedBlockers = 20

// Blockers returns the keys of the open issues that block this one, separated by commas, or only that they are more than
// maxNamedBlockers; empty if there are none.
func (i Issue) Blockers() string {
	var open []string
	for _, b := range i.BlockedBy {
		if b.Open {
			open = append(open, b.Key)
		}
	}
	if len(open) > maxNamedBlockers {
		return fmt.Sprintf("more than %d issues", maxNamedBlockers)
	}
	return strings.Join(open, ", ")
}
