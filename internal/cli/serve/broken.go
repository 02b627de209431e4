package serve

import (
	"context"
	"maps"
	"slices"

	"github.com/ralph-pool/ralph/internal/cli/channels"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/notify"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/worktree"
)

// alarm notifies people of one problem of a project that is not open, or of the list of projects.
type alarm struct {
	line     string
	notifier *notify.Notifier
}

// listAlarm is the key of the alarm about the list of projects.
const listAlarm = ""

// raise notifies people, once, that a project cannot be opened, or that the list of projects is refused. The notification is sent
// again until it is accepted, or until the problem is over: then the project's own notifier sends it, or that of the next alarm.
func (s *serving) raise(ctx context.Context, a *compose.App, name, line string) {
	s.mu.Lock()
	known := s.alarms[name].line == line
	s.mu.Unlock()
	if known || s.cmd.Context().Err() != nil { // a service that ends interrupts what it is opening
		return
	}
	s.calm(name)
	people, err := s.peopleOf(ctx, a, name)
	if err != nil {
		s.log.Warn("notification not sent", "project", name, "error", err)
		return
	}
	if name == listAlarm {
		people.Refused(line)
	} else {
		people.Problem(line)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alarms[name] = alarm{line, people}
}

// calm ends the alarm of a project, if there is one.
func (s *serving) calm(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.alarms[name]; old.notifier != nil {
		s.closing.Go(old.notifier.Close)
	}
	delete(s.alarms, name)
}

// calmAll ends all alarms.
func (s *serving) calmAll() {
	s.mu.Lock()
	names := slices.Collect(maps.Keys(s.alarms))
	s.mu.Unlock()
	for _, name := range names {
		s.calm(name)
	}
}

// peopleOf returns the notifier of a project that is not open. The repository's own file, which may be the problem, cannot set
// its channels. Without a repository the messages wait beside the state folders.
func (s *serving) peopleOf(ctx context.Context, a *compose.App, name string) (*notify.Notifier, error) {
	loaded, err := config.Load(a.Sources(s.cmd.Flags(), ""))
	if err != nil {
		return nil, err
	}
	p := &compose.Parts{Config: loaded.Config, Loaded: loaded, Secrets: redact.New(), Log: s.log}
	root, err := a.StateDir(p.Config)
	if err != nil {
		return nil, err
	}
	p.Top, p.State = s.Host.Dir, root
	if place, err := worktree.Locate(ctx, a.Repo); err == nil {
		if p.State, err = worktree.StateDir(ctx, root, place); err != nil {
			return nil, err
		}
		p.Top = place.Top
	}
	p.Secrets.Add(a.Secrets(nil, a.User())...)
	return channels.New(a, p, name, channels.Outbox(p))
}
