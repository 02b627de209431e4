package tracker

import (
	"fmt"
	"slices"
	"strings"
)

// Cycle is a ring of open issues, by key: each is blocked by the next, and the last by the first. None of them can start.
type Cycle []string

// Cycles finds rings among open issues that block each other. Each issue is in one of them at most.
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
				taken := func(k string) bool { return state[k] == done } // by another ring
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

// namedBlockers is how many issues are named at most as what blocks another. Trackers look up no more for one text.
const namedBlockers = 20

// Blockers names the open issues that block this one; empty: none does.
func (i Issue) Blockers() string {
	var open []string
	for _, b := range i.BlockedBy {
		if b.Open {
			open = append(open, b.Key)
		}
	}
	if len(open) > namedBlockers {
		return fmt.Sprintf("more than %d issues", namedBlockers)
	}
	return strings.Join(open, ", ")
}
