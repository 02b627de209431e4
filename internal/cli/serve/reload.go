package serve

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/internal/service"
)

// fileCheck is the interval at which the list of projects is checked for changes.
const fileCheck = 2 * time.Second

// watch reloads the list of projects when it changes, and at each hangup, until ralph is asked to stop.
func (s *serving) watch(hangup <-chan struct{}) {
	ticker := time.NewTicker(fileCheck)
	defer ticker.Stop()
	known := stamp(s.file)
	for {
		select {
		case <-s.cmd.Context().Done():
			return
		case <-hangup:
			known = stamp(s.file)
			s.reload()
		case <-ticker.C:
			if now := stamp(s.file); now != known {
				known = now
				s.reload()
			}
		}
	}
}

func (s *serving) reload() {
	list, total, err := s.projects()
	if err != nil {
		line := service.OneLine(err)
		s.service.Refuse(line)
		s.log.Error("configuration refused; the last good one stays", "error", line)
		s.raise(s.cmd.Context(), s.App, listAlarm, line)
		return
	}
	s.service.Refuse("")
	s.calm(listAlarm)
	names, was := s.names, s.total
	s.apply(list, total)
	attrs := []any{"projects", len(list)}
	if added := without(s.names, names); len(added) > 0 {
		attrs = append(attrs, "added", added)
	}
	if removed := without(names, s.names); len(removed) > 0 {
		attrs = append(attrs, "removed", removed)
	}
	if total != was {
		attrs = append(attrs, "parallel", total, "before", was)
	}
	s.log.Info("configuration read again", attrs...)
}

// without returns the names that are not among others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// apply works these projects, at most total issues at a time. In a fleet the database decides which project is next.
func (s *serving) apply(list []service.Project, total int) {
	s.names, s.total = nil, total
	for _, p := range list {
		s.names = append(s.names, p.Name)
	}
	if s.joined != nil {
		s.joined.SetParallel(total)
		total = 0
	}
	s.service.Apply(s.Hard, list, total)
}

// stamp identifies a version of a file by time and size. It returns "" if there is no file.
func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size())
}
