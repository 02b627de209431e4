package service_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/service/servicetest"
	"github.com/ralph-pool/ralph/pool/journal"
)

// shared is a pause in memory that several services share.
type shared struct{ on, away atomic.Bool }

func (s *shared) IsPaused() bool { return s.on.Load() }

func (s *shared) Set(paused bool) error {
	if s.away.Load() {
		return errors.New("away")
	}
	s.on.Store(paused)
	return nil
}

// A shared pause applies to every service, whoever starts or ends it, even if it was started while no service ran.
func TestSharedPause(t *testing.T) {
	t.Parallel()
	pause := &shared{}
	one, two := servicetest.New(t, "one", 1), servicetest.New(t, "two", 1)
	one.Pause, two.Pause = pause, pause
	file := service.PauseFile(filepath.Join(filepath.Dir(one.Repo()), "state"))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), service.WritePause(file, true)); err != nil {
		t.Fatal(err)
	}
	pause.away.Store(true)
	s, w := start(t, 0, one)
	until(t, s, "one", in(service.Broken)) // nothing starts before the others know
	pause.away.Store(false)
	s.Wake("one")
	until(t, s, "one", in(service.Paused))
	if _, err := os.Stat(file); err == nil || !pause.IsPaused() {
		t.Errorf("the others were not told: %v", err)
	}
	other, events := start(t, 0, two)
	until(t, other, "two", in(service.Paused))
	pause.away.Store(true)
	if err := other.Pause("two", false, "Ada"); err == nil {
		t.Error("a pause that cannot be ended for all is ended")
	}
	until(t, other, "two", in(service.Paused))
	pause.away.Store(false)
	if err := other.Pause("two", false, "Ada"); err != nil {
		t.Fatal(err)
	}
	w.Until(t, "one", journal.EventEnded, 1)
	events.Until(t, "two", journal.EventEnded, 1)
	if err := s.Pause("one", true, "Ada"); err != nil {
		t.Fatal(err)
	}
	until(t, other, "two", in(service.Paused))
}

// The log says who has paused and resumed a project, once for each change.
func TestPauseIsLogged(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 0)
	log := &lines{}
	s := service.New(service.Config{Log: slog.New(slog.NewTextHandler(log, nil))})
	s.Apply(t.Context(), []service.Project{p.Project()}, 0)
	t.Cleanup(func() { s.Kill(); s.Wait() })
	until(t, s, "p", in(service.Waiting))
	for _, paused := range []bool{true, true, false} {
		if err := s.Pause("p", paused, "Ada"); err != nil {
			t.Fatal(err)
		}
	}
	got := regexp.MustCompile(`msg="(project (?:paused|resumed)" project=p by=Ada)\n`).FindAllString(log.text(), -1)
	if len(got) != 2 || !strings.Contains(got[0], "paused") || !strings.Contains(got[1], "resumed") {
		t.Errorf("%q in\n%s", got, log.text())
	}
}
