package service_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/service/servicetest"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// silent is a tracker that can be made to fail.
type silent struct {
	tracker.Tracker
	away *atomic.Bool
}

func (s silent) List(ctx context.Context, q tracker.Query) (tracker.Listing, error) {
	if s.away.Load() {
		return tracker.Listing{}, errors.New("the forge is away")
	}
	return s.Tracker.List(ctx, q)
}

// A board that could not be read again keeps the time of its data.
func TestBoardKeepsItsTime(t *testing.T) {
	t.Parallel()
	p, away := servicetest.New(t, "p", 1), new(atomic.Bool)
	p.Forge = func(backlog tracker.Tracker) tracker.Tracker { return silent{backlog, away} }
	s, w := start(t, 0, p)
	w.Until(t, "p", journal.EventEnded, 1)
	until(t, s, "p", in(service.Waiting))
	first, err := s.Board(t.Context(), "p")
	if err != nil || first.Problem != "" {
		t.Fatal(err, first.Problem)
	}
	away.Store(true)
	if err := s.Retry(t.Context(), "p", "task-1", "Ada", false); err != nil { // forces a new read
		t.Fatal(err)
	}
	<-time.After(time.Millisecond)
	next, err := s.Board(t.Context(), "p")
	if err != nil || next.Problem == "" || !next.At.Equal(first.At) {
		t.Errorf("read at %s, and then %s: %q, %v", first.At, next.At, next.Problem, err)
	}
	p.Wait()
	away.Store(false)
}

// A problem includes a hint to its fix.
func TestProblemHasItsFix(t *testing.T) {
	t.Parallel()
	p, away := servicetest.New(t, "p", 1), new(atomic.Bool)
	away.Store(true)
	p.Forge = func(backlog tracker.Tracker) tracker.Tracker { return silent{backlog, away} }
	project := p.Project()
	load := project.Load
	project.Load = func(ctx context.Context) (service.Setup, error) {
		setup, err := load(ctx)
		open := setup.Open
		setup.Open = func(ctx context.Context, observe func(journal.Event)) (*service.Parts, error) {
			parts, err := open(ctx, observe)
			if err == nil {
				parts.Fix = func(error) string { return "renew the token" }
			}
			return parts, err
		}
		return setup, err
	}
	s := service.New(service.Config{Log: slog.New(slog.DiscardHandler)})
	s.Apply(t.Context(), []service.Project{project}, 0)
	t.Cleanup(func() { s.Kill(); s.Wait() })
	until(t, s, "p", func(now service.Status) bool {
		return strings.HasSuffix(now.Problem, "the forge is away; renew the token")
	})
}
