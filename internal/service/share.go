package service

import "time"

// demand is a project as the sharing of slots sees it.
type demand struct {
	limit int // of the project's own; 0: it may start nothing
	busy  int // issues that are being worked
	had   int // slots it had until now
}

// share divides slots among projects: total of them, or all they want when total is 0. A free slot goes to the project that
// has the fewest, first of those that used all they had: one that left a slot unused has nothing to start. What is being
// worked is never counted out.
func share(total int, list []demand) []int {
	out := make([]int, len(list))
	free := total
	for i, d := range list {
		out[i] = min(d.busy, d.limit)
		free -= d.busy
		if total == 0 {
			out[i] = d.limit
		}
	}
	if total == 0 {
		return out
	}
	for _, hungry := range []bool{true, false} {
		for free > 0 {
			next := -1
			for i, d := range list {
				if out[i] < d.limit && hungry == (d.busy >= d.had) && (next < 0 || out[i] < out[next]) {
					next = i
				}
			}
			if next < 0 {
				break
			}
			out[next]++
			free--
		}
	}
	return out
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
