package fleet

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// A failure to plan the whole backlog is this project's problem while this machine plans it.
func TestWhyNothingIsPlanned(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, nil, 0)
	p.f.projects = map[string]*served{"p": p.s}
	away, capped := errors.New("away"), backlog.Plan{Skipped: []backlog.Skipped{{Skip: journal.Skip{Code: journal.SkipCap, Detail: "all is spent"}}}}
	for _, c := range []struct {
		when string
		plan backlog.Plan
		err  error
		open map[string]bool
		want string
	}{
		{when: "it fails", err: away, want: "away"},
		{when: "a cap is spent", plan: capped, want: "all is spent"},
		{when: "a run may leave something", plan: capped, open: map[string]bool{"x": true}},
		{when: "a cap is spent again", plan: capped, want: "all is spent"},
		{when: "nothing is wrong"},
	} {
		p.maintain, p.open = func(context.Context) (backlog.Plan, error) { return c.plan, c.err }, c.open
		if err := p.readBacklog(t.Context()); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.when, err)
		}
		p.s.notePlanning(p.idle)
		if got := p.f.PauseReason("p"); c.want == "" && got != nil || c.want != "" && (got == nil || got.Error() != c.want) {
			t.Errorf("%s: held by %v, want %q", c.when, got, c.want)
		}
	}
}

// A backlog that cannot be read for hours causes one line in the log.
func TestLookThatFailsIsLoggedOnce(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, nil, 0)
	var log bytes.Buffer
	p.f.c.Log = slog.New(slog.NewTextHandler(&log, nil))
	ctx, stop := context.WithCancelCause(t.Context())
	now, looks := time.Now(), 0
	p.now = func() time.Time { now = now.Add(time.Second); return now }
	p.s.Poll, p.f.c.Tick, p.wait = time.Hour, time.Millisecond, time.Millisecond
	p.maintain = func(context.Context) (backlog.Plan, error) {
		if looks++; looks == 4 {
			stop(nil)
		}
		return backlog.Plan{}, errors.New("away")
	}
	p.run(ctx)
	if n := strings.Count(log.String(), "backlog not planned"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}

// If the database refuses rows for hours, that causes one line in the log, and is the project's problem until it accepts
// them.
func TestRefusedRowsAreTold(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, nil, 0)
	var log bytes.Buffer
	p.f.c.Log, p.f.projects = slog.New(slog.NewTextHandler(&log, nil)), map[string]*served{"p": p.s}
	must := func(sql string) {
		t.Helper()
		if _, err := p.f.db.exec(t.Context(), sql); err != nil {
			t.Error(err)
		}
	}
	must("ALTER TABLE river_job ADD CONSTRAINT closed CHECK (false) NOT VALID")
	ctx, stop := context.WithCancelCause(t.Context())
	now, looks := time.Now(), 0
	p.now = func() time.Time { now = now.Add(time.Second); return now }
	p.s.Poll, p.f.c.Tick, p.wait = 5*time.Second, time.Millisecond, time.Millisecond
	p.maintain = func(context.Context) (backlog.Plan, error) {
		switch looks++; looks {
		case 4:
			if err := p.f.PauseReason("p"); err == nil || !strings.Contains(err.Error(), "closed") {
				t.Errorf("refused: held by %v", err)
			}
			must("ALTER TABLE river_job DROP CONSTRAINT closed")
		case 6:
			if err := p.f.PauseReason("p"); err != nil {
				t.Errorf("taken: held by %v", err)
			}
			stop(nil)
		}
		return backlog.Plan{Work: []tracker.Issue{{Key: "a"}}}, nil
	}
	p.run(ctx)
	if n := strings.Count(log.String(), "backlog not planned"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}
