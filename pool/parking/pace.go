package parking

import (
	"math"
	"time"

	"github.com/ralph-pool/ralph/agents"
)

const (
	// burst is the time in which several refusals count as one: concurrent runs reach the same limit together.
	burst = 20 * time.Second
	// growInterval is the time without a refusal after which one more run is allowed.
	growInterval = time.Minute
)

// Pace is the number of concurrent runs of one agent. It halves when the agent's model service refuses a request, and grows
// by one for each minute without a refusal. The zero Pace sets no limit.
type Pace struct {
	limit int       // 0: no limit
	since time.Time // when limit was set
}

// Limited returns the pace after a refusal; most is the general limit.
func (p Pace) Limited(now time.Time, most int) Pace {
	if p.limit > 0 && now.Before(p.since.Add(burst)) {
		return p
	}
	return Pace{limit: max(1, p.Allowed(now, most)/2), since: now}
}

// Allowed returns how many runs may be running: at least 1, but at most most, which may be 0.
func (p Pace) Allowed(now time.Time, most int) int {
	if p.limit == 0 {
		return most
	}
	return min(most, p.limit+int(max(0, now.Sub(p.since))/growInterval))
}

// SetMost sets how many runs may be running if no service refuses requests, and returns the number of running runs.
func (l *Lot) SetMost(n int) (busy int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maxRuns = max(0, n)
	return l.busy
}

// Limited records that the agent's model service has refused a request because of a rate limit or overload.
func (l *Lot) Limited(agent string, now time.Time) {
	l.mu.Lock()
	if l.paces == nil {
		l.paces = map[string]Pace{}
	}
	old, most := l.paces[agent], max(1, l.maxRuns, l.busy)
	pace := old.Limited(now, most)
	l.paces[agent] = pace
	l.mu.Unlock()
	if pace != old && l.Slowed != nil {
		l.Slowed(Slow{Agent: agent, Limit: pace.limit, Since: pace.since, Most: most})
	}
}

// Allowed returns how many runs may be running now if the next one uses the first available agent of the list, and the
// limit without refusals.
func (l *Lot) Allowed(list []agents.Choice, now time.Time) (allowed, most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.allowed(list, now), l.maxRuns
}

// Capacity returns how many runs the model service of the first available agent supports, regardless of SetMost.
func (l *Lot) Capacity(list []agents.Choice, now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pace(list, now).Allowed(now, math.MaxInt)
}

// allowed implements Allowed. The caller holds l.mu.
func (l *Lot) allowed(list []agents.Choice, now time.Time) int {
	return l.pace(list, now).Allowed(now, l.maxRuns)
}

// pace returns the pace of the first available agent of the list. The caller holds l.mu.
func (l *Lot) pace(list []agents.Choice, now time.Time) Pace {
	return l.paces[list[max(0, l.firstAvailable(list, nil, now))].Agent]
}

// Free reports whether another run may begin.
func (l *Lot) Free(list []agents.Choice, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy < l.allowed(list, now)
}

// Enter counts another run if it may begin. Then the caller must call Leave.
func (l *Lot) Enter(list []agents.Choice, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy >= l.allowed(list, now) {
		return false
	}
	l.busy++
	return true
}

// Leave counts the end of a run.
func (l *Lot) Leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy--
}
