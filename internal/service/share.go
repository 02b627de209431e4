package service

import (
	"cmp"
	"time"
)

// demand is a project as the sharing of slots sees it.
type demand struct {
	limit  int // of the project's own; 0: it may start nothing
	busy   int // issues that are being worked
	wants  int // slots that it could use; 0: no more than it works
	waited int // looks since it last worked anything
}

// share divides slots among projects: total of them, or all they want when total is 0. A free slot goes to the project that
// has the fewest, first of those that could use it, and then to the one that has waited the longest. A project that works more
// than its share gets fewer slots than it works, so that it starts nothing when a run ends; what is on is never counted out.
func share(total int, list []demand) []int {
	out, target, free := make([]int, len(list)), make([]int, len(list)), total
	if total == 0 {
		for i, d := range list {
			out[i] = d.limit
		}
		return out
	}
	fill(list, target, total, func(i int) int { return min(list[i].limit, max(list[i].busy, list[i].wants)) })
	for i, d := range list {
		out[i] = min(d.busy, target[i])
		free -= d.busy
	}
	free = fill(list, out, free, func(i int) int { return target[i] })
	fill(list, out, free, func(i int) int { return list[i].limit })
	return out
}

// fill gives what is free to projects, one by one, up to as many as each may have, and returns what is left.
func fill(list []demand, out []int, free int, upTo func(i int) int) int {
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

// merit orders projects that have as many slots as each other: the first slot goes to the one that has waited the longest,
// others go to the one that works the most.
func merit(d demand, has int) int {
	if has == 0 {
		return d.waited
	}
	return d.busy
}

// balance gives every pool its slots. Where they are shared, all have none for a moment, so that what is being worked is
// counted exactly.
func (s *Service) balance() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beat.Store(time.Now().Unix())
	demands := make([]demand, len(s.projects))
	for i, p := range s.projects {
		demands[i] = p.hold(s.total > 0)
	}
	for i, n := range share(s.total, demands) {
		s.projects[i].give(n)
	}
}
