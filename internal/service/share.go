package service

import (
	"cmp"
	"slices"
	"time"
)

// demand is the demand of a project for slots.
type demand struct {
	limit  int // maximum for the project; 0: it may start nothing
	busy   int // issues being worked
	usable int // slots that it could use; 0: no more than busy
	waited int // balances since it last worked an issue
}

// takeDemand returns the project's demand for slots. With exact it also takes away the slots, so that the count of running issues
// is exact.
func (p *project) takeDemand(exact bool) demand {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.parts == nil || !p.sweeping {
		return demand{}
	}
	d := demand{limit: p.setup.Parallel}
	if exact {
		d.busy, p.slots = p.parts.Pool.SetParallel(0), 0
		d.usable = p.parts.Pool.MaxAtOnce()
		if p.waited++; d.busy > 0 {
			p.waited = 0
		}
		d.waited = p.waited
	}
	if p.paused || p.ended || p.nextParts != nil {
		d.limit = 0
	}
	return d
}

// setSlots sets the project's number of slots.
func (p *project) setSlots(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starved = n == 0
	if p.parts != nil && p.sweeping && p.slots != n {
		p.slots = n
		p.parts.Pool.SetParallel(n)
	}
}

// sharedSlots returns the maximum number of concurrent issues of all projects, or 0.
func (s *Service) sharedSlots() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// share divides slots among projects: total slots, or each project's limit if total is 0. A free slot goes to the project with the
// fewest slots, first among those that could use it; ties go to the one that has waited longest. A project that works more issues
// than its share gets fewer slots than issues, so that it starts nothing when a run ends. Current runs are never cut short.
func share(total int, list []demand) []int {
	out, target, free := make([]int, len(list)), make([]int, len(list)), total
	if total == 0 {
		for i, d := range list {
			out[i] = d.limit
		}
		return out
	}
	giveSlots(list, target, total, func(i int) int { return min(list[i].limit, max(list[i].busy, list[i].usable)) })
	for i, d := range list {
		out[i] = min(d.busy, target[i])
		free -= d.busy
	}
	free = giveSlots(list, out, free, func(i int) int { return target[i] })
	giveSlots(list, out, free, func(i int) int { return list[i].limit })
	return out
}

// giveSlots gives free slots to projects, one by one, up to upTo(i) for project i, and returns the number of slots left.
func giveSlots(list []demand, out []int, free int, upTo func(i int) int) int {
	for ; free > 0; free-- {
		next := -1
		for i, d := range list {
			if out[i] < upTo(i) && (next < 0 || cmp.Or(out[i]-out[next], merit(list[next], out[i])-merit(d, out[i])) < 0) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		out[next]++
	}
	return free
}

// merit breaks ties between projects with the same number of slots: the first slot goes to the one that has waited longest,
// further ones to the one that works the most issues.
func merit(d demand, has int) int {
	if has == 0 {
		return d.waited
	}
	return d.busy
}

// balance gives every pool its slots. With a limit it first takes all slots away, so that the count of running issues is exact.
func (s *Service) balance() {
	s.balancing.Lock()
	defer s.balancing.Unlock()
	s.mu.Lock()
	projects, total := slices.Clone(s.projects), s.total
	s.mu.Unlock()
	s.lastBalance.Store(time.Now().Unix())
	demands := make([]demand, len(projects))
	for i, p := range projects {
		demands[i] = p.takeDemand(total > 0)
	}
	for i, n := range share(total, demands) {
		projects[i].setSlots(n)
	}
}
