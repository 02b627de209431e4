package service_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/internal/gittest"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/service/servicetest"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

func TestMain(m *testing.M) {
	gittest.Isolate()
	goleak.VerifyTestMain(m)
}

// start starts a service that works the projects until the test ends.
func start(t *testing.T, total int, list ...*servicetest.Project) (*service.Service, *servicetest.Watch) {
	t.Helper()
	w := servicetest.NewWatch()
	s := service.New(service.Config{Observe: w.Observe})
	s.Apply(t.Context(), projects(list), total)
	t.Cleanup(func() { s.Kill(); s.Wait() })
	return s, w
}

func projects(list []*servicetest.Project) (out []service.Project) {
	for _, p := range list {
		out = append(out, p.Project())
	}
	return out
}

// until waits until the project's status satisfies is.
func until(t *testing.T, s *service.Service, name string, is func(service.Status) bool) (status service.Status) {
	t.Helper()
	servicetest.Eventually(t, func() bool {
		var err error
		status, err = s.Status(name)
		return err == nil && is(status)
	})
	return status
}

func in(state service.State) func(service.Status) bool {
	return func(s service.Status) bool { return s.State == state }
}

// A broken project shows its error, and the others are worked.
func TestOneProjectIsBroken(t *testing.T) {
	t.Parallel()
	good, bad := servicetest.New(t, "good", 1), servicetest.New(t, "bad", 1)
	bad.Break(errors.New("line 3: no such key\nand another"))
	s, w := start(t, 0, good, bad)
	w.Until(t, "good", journal.EventEnded, 1)
	got := until(t, s, "bad", in(service.Broken))
	if got.Problem != "line 3: no such key (and 1 more)" {
		t.Errorf("problem %q", got.Problem)
	}
	if told := bad.Problems(); !slices.Equal(told, []string{got.Problem}) {
		t.Errorf("told of %q", told)
	}
	if _, err := s.Board(t.Context(), "bad"); !errors.Is(err, service.ErrNotOpen) {
		t.Errorf("board: %v", err)
	}
	bad.Break(nil)
	s.Apply(t.Context(), projects([]*servicetest.Project{good, bad}), 0)
	if e := w.Until(t, "bad", journal.EventEnded, 1); e.Outcome != journal.Succeeded {
		t.Errorf("once it is right: %+v", e)
	}
	if !s.Ready() || !s.Alive() {
		t.Errorf("ready %t, alive %t", s.Ready(), s.Alive())
	}
}

// All projects together work exactly total issues at the same time.
func TestSlotsAreShared(t *testing.T) {
	t.Parallel()
	var list []*servicetest.Project
	for _, name := range []string{"a", "b", "c"} {
		p := servicetest.New(t, name, 2)
		p.Wait()
		p.Set("parallel", "1")
		list = append(list, p)
	}
	_, w := start(t, 2, list...)
	w.Until(t, "", journal.EventStarted, 2) // both must be running before the first continues
	for i := range 6 {
		e := w.Until(t, "", journal.EventStarted, i+1)
		list[strings.Index("abc", e.Pool)].Go()
	}
	w.Until(t, "", journal.EventEnded, 6)
	if peak := w.Peak(); peak != 2 {
		t.Errorf("%d were on at the same time, want 2", peak)
	}
}

// A project with all slots gives one up when a run ends and another project waits.
func TestFreeSlotGoesToWhoHasFewest(t *testing.T) {
	t.Parallel()
	a, b := servicetest.New(t, "a", 3), servicetest.New(t, "b", 3)
	a.Wait()
	b.Wait()
	s, w := start(t, 1, a)
	w.Until(t, "a", journal.EventStarted, 1)
	s.Apply(t.Context(), projects([]*servicetest.Project{a, b}), 1)
	until(t, s, "b", in(service.Working))
	for i, want := range []*servicetest.Project{a, b, a, b, a, b} {
		if e := w.Until(t, "", journal.EventStarted, i+1); e.Pool != want.Name {
			t.Fatalf("run %d is of %s, want %s", i+1, e.Pool, want.Name)
		}
		s.Apply(t.Context(), projects([]*servicetest.Project{a, b}), 1) // triggers a balance, as happens every second
		want.Go()
	}
}

// Slots that a project cannot use go to the others, even while it works.
func TestUnusedSlotsGoToOthers(t *testing.T) {
	t.Parallel()
	a, b := servicetest.New(t, "a", 1), servicetest.New(t, "b", 3)
	a.Wait()
	b.Wait()
	_, w := start(t, 3, a, b)
	w.Until(t, "a", journal.EventStarted, 1)
	w.Until(t, "b", journal.EventStarted, 2)
}

// The reason that holds back new runs is shown during a run, and only while it lasts.
func TestHeldWhileARunIsOn(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 1)
	p.Wait()
	var away atomic.Bool
	p.Held = func() error {
		if away.Load() {
			return journal.ErrUnavailable
		}
		return nil
	}
	s, w := start(t, 0, p)
	w.Until(t, "p", journal.EventStarted, 1)
	away.Store(true)
	if st := until(t, s, "p", func(st service.Status) bool { return st.Problem != "" }); st.State != service.Working || st.Problem != "the database is unavailable" {
		t.Errorf("%+v", st)
	}
	if why := s.NotReady(); s.Ready() || !s.Alive() || why != "database unavailable" {
		t.Errorf("away: ready %t, %q, alive %t", s.Ready(), why, s.Alive())
	}
	away.Store(false)
	until(t, s, "p", func(st service.Status) bool { return st.Problem == "" })
	if !s.Ready() {
		t.Error("back, and not ready")
	}
	p.Go()
	until(t, s, "p", in(service.Waiting))
}

// A changed configuration takes effect after the current runs. An invalid one is rejected.
func TestReload(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 1)
	p.Wait()
	s, w := start(t, 0, p)
	w.Until(t, "p", journal.EventStarted, 1)
	p.Break(errors.New("bad"))
	again := func() { s.Apply(t.Context(), projects([]*servicetest.Project{p}), 0) }
	again()
	if st := until(t, s, "p", func(st service.Status) bool { return st.Problem != "" }); st.State != service.Working || len(st.Running) != 1 || !st.Works ||
		st.Problem != "configuration refused; the last good one stays: bad" {
		t.Errorf("while the configuration is bad: %+v", st)
	}
	p.Break(nil)
	p.Set("parallel", "7") // a live setting
	again()
	until(t, s, "p", func(st service.Status) bool { return st.Parallel == 7 && st.Problem == "" })
	if opened, _ := p.Opened(); opened != 1 {
		t.Errorf("opened %d times", opened)
	}
	p.Set("agent", servicetest.Commits)
	again()
	servicetest.Eventually(t, func() bool { opened, _ := p.Opened(); return opened == 2 })
	p.Issue("later", "Later")
	p.Go() // the agent that started under the old configuration
	if e := w.Until(t, "p", journal.EventEnded, 1); e.Key != "task-1" || e.Outcome != journal.Succeeded {
		t.Errorf("the first: %+v", e)
	}
	if e := w.Until(t, "p", journal.EventEnded, 2); e.Key != "later" || e.Outcome != journal.Succeeded {
		t.Errorf("under the new configuration: %+v", e)
	}
	until(t, s, "p", in(service.Waiting))
	p.Break(errors.New("bad again"))
	again()
	until(t, s, "p", func(st service.Status) bool { return st.Problem != "" })
	s.Wake("p")
	p.Issue("last", "Last") // a successful sweep under the last valid configuration
	w.Until(t, "p", journal.EventEnded, 3)
	until(t, s, "p", in(service.Waiting))
	if got := p.Problems(); !slices.Equal(got, []string{""}) {
		t.Errorf("told of problems: %q", got)
	}
	if got := p.Refused(); !slices.Equal(got, []string{"bad", "", "bad again"}) {
		t.Errorf("told of refused configurations: %q", got)
	}
	if opened, closed := p.Opened(); opened != 2 || closed != 1 {
		t.Errorf("opened %d times, closed %d", opened, closed)
	}
}

// A slow disk of one project delays no call of the service.
func TestSlowDisk(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 1)
	var s atomic.Pointer[service.Service]
	p.OnDisk = func() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			if s := s.Load(); s != nil {
				s.Projects()
				s.Apply(t.Context(), projects([]*servicetest.Project{p}), 0)
			}
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second): // reached only by a failing test
			t.Error("the service waits for the disk")
		}
	}
	begun, w := start(t, 0, p)
	s.Store(begun)
	w.Until(t, "p", journal.EventEnded, 1)
	until(t, begun, "p", in(service.Waiting))
	p.Break(errors.New("bad"))
	begun.Wake("p")
	until(t, begun, "p", func(st service.Status) bool { return st.Problem != "" })
	p.Break(nil)
	p.Set("agent", servicetest.Commits+" ")
	begun.Wake("p")
	servicetest.Eventually(t, func() bool { _, closed := p.Opened(); return closed == 1 })
}

// A removed project finishes its runs, and can be added again.
func TestRemovedProject(t *testing.T) {
	t.Parallel()
	p, other := servicetest.New(t, "p", 2), servicetest.New(t, "other", 0)
	p.Wait()
	p.Set("parallel", "1")
	s, w := start(t, 0, p, other)
	w.Until(t, "p", journal.EventStarted, 1)
	s.Apply(t.Context(), projects([]*servicetest.Project{other}), 0)
	until(t, s, "p", in(service.Draining))
	s.Apply(t.Context(), projects([]*servicetest.Project{other, p}), 0)
	if st, err := s.Status("p"); err != nil || st.State != service.Draining { // it is reopened when its runs have ended
		t.Errorf("named again while a run is on: %s, %v", st.State, err)
	}
	s.Apply(t.Context(), projects([]*servicetest.Project{other}), 0)
	p.Go()
	servicetest.Eventually(t, func() bool { _, err := s.Status("p"); return errors.Is(err, service.ErrNoProject) })
	w.Until(t, "p", journal.EventEnded, 1)
	p.Set("agent", servicetest.Commits)
	s.Apply(t.Context(), projects([]*servicetest.Project{other, p}), 0)
	w.Until(t, "p", journal.EventEnded, 2)
}

// A stopped issue is not worked until somebody retries it. A paused project starts nothing, also after a restart.
func TestStopRetryPause(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 1)
	p.Set("agent", `cat >/dev/null; exec sleep 1000`)
	s, w := start(t, 0, p)
	w.Until(t, "p", journal.EventStarted, 1)
	if err := s.Stop(t.Context(), "p", "other", ""); !errors.Is(err, tracker.ErrNotFound) {
		t.Errorf("stop of another: %v", err)
	}
	if err := s.Stop(t.Context(), "p", "task-1", "the-one-before"); err == nil || err.Error() != "task-1 has no run the-one-before; nothing was stopped" {
		t.Errorf("stop of a run that never was: %v", err)
	}
	st, err := s.Status("p")
	if err != nil || len(st.Running) != 1 {
		t.Fatalf("%+v, %v", st, err)
	}
	if err := s.Stop(t.Context(), "p", "task-1", st.Running[0].Run); err != nil {
		t.Fatal(err)
	}
	if e := w.Until(t, "p", journal.EventEnded, 1); e.Outcome != journal.Interrupted && e.Outcome != journal.Superseded {
		t.Errorf("stopped: %+v", e)
	}
	until(t, s, "p", in(service.Waiting))
	if err := s.Pause("p", true, "Ada"); err != nil {
		t.Fatal(err)
	}
	p.Set("agent", servicetest.Commits)
	s.Kill()
	s.Wait()
	s, w = start(t, 0, p)
	until(t, s, "p", in(service.Paused))
	if err := s.Retry(t.Context(), "p", "task-1", "Ada", false); err != nil {
		t.Fatal(err)
	}
	board, err := s.Board(t.Context(), "p")
	if err != nil || len(board.Work) != 1 {
		t.Errorf("board: %+v, %v", board, err)
	}
	if st = until(t, s, "p", func(service.Status) bool { return true }); st.State != service.Paused || len(st.Running) > 0 {
		t.Errorf("while it is paused: %+v", st)
	}
	if err := s.Pause("p", false, "Ada"); err != nil {
		t.Fatal(err)
	}
	if e := w.Until(t, "p", journal.EventEnded, 1); e.Outcome != journal.Succeeded {
		t.Errorf("worked again: %+v", e)
	}
}

// A run that was stopped here is not resumed, even if other machines cannot be asked.
func TestStopWhileOthersAreAway(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 1)
	p.Set("agent", `cat >/dev/null; exec sleep 1000`)
	s, w := start(t, 0, p)
	w.Until(t, "p", journal.EventStarted, 1)
	parts, err := s.Parts("p")
	if err != nil {
		t.Fatal(err)
	}
	away := errors.New("the database is away")
	parts.Stop = func(context.Context, string, string) (bool, error) { return false, away }
	if err := s.Stop(t.Context(), "p", "task-1", ""); !errors.Is(err, away) {
		t.Errorf("stopped: %v", err)
	}
	w.Until(t, "p", journal.EventEnded, 1)
	i, err := parts.Tracker.Get(t.Context(), "task-1")
	if err != nil || slices.Contains(i.Labels, "no-human") {
		t.Errorf("labels %q, %v", i.Labels, err)
	}
	if err := s.Stop(t.Context(), "p", "other", ""); !errors.Is(err, away) || errors.Is(err, service.ErrNotOn) {
		t.Errorf("stop of one that is not on here: %v", err)
	}
}

// A failed issue is worked again while a long run of its project is active.
func TestFailedIssueWaitsForNoRun(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 2)
	p.Wait(`case $RALPH_ISSUE_KEY in task-1) exit 3;; esac; `)
	p.Set("poll", "1ns")
	s, w := start(t, 0, p)
	w.Until(t, "p", journal.EventEnded, 1)
	p.Issue("task-1", "Said better") // ends its wait
	s.Apply(t.Context(), projects([]*servicetest.Project{p}), 0)
	if e := w.Until(t, "p", journal.EventEnded, 2); e.Key != "task-1" {
		t.Errorf("%+v", e)
	}
	p.Go()
}

// Drain waits for current runs and starts no others.
func TestDrain(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 3)
	p.Wait()
	p.Set("parallel", "1")
	s, w := start(t, 0, p)
	w.Until(t, "p", journal.EventStarted, 1)
	s.Drain()
	if why := s.NotReady(); s.Ready() || why != "draining" {
		t.Errorf("a service that drains is ready: %q", why)
	}
	p.Go()
	s.Wait()
	runs, err := p.Store.Find(t.Context(), journal.Query{})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := []string{}
	for _, r := range runs {
		outcomes = append(outcomes, string(r.Verdict.Outcome))
	}
	if !slices.Equal(outcomes, []string{"succeeded"}) {
		t.Errorf("runs: %s", strings.Join(outcomes, ", "))
	}
	if opened, closed := p.Opened(); opened != closed {
		t.Errorf("opened %d times, closed %d", opened, closed)
	}
}

// A wake that comes too late for a sweep, but before its end is noticed, starts the next sweep at once.
func TestWakeAtTheEndOfASweep(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 0)
	project := p.Project()
	load, loaded := project.Load, make(chan struct{}, 100)
	project.Load = func(ctx context.Context) (service.Setup, error) {
		loaded <- struct{}{}
		return load(ctx)
	}
	s, sweeps, again := service.New(service.Config{}), 0, make(chan struct{})
	p.Work = func(ctx context.Context) error {
		if sweeps++; sweeps > 1 {
			close(again)
			<-ctx.Done()
			return nil
		}
		<-loaded
		s.Wake("p")
		<-loaded // the wake has been received
		return nil
	}
	s.Apply(t.Context(), []service.Project{project}, 0)
	t.Cleanup(func() { s.Kill(); s.Wait() })
	select {
	case <-again:
	case <-time.After(time.Minute):
		t.Error("no second sweep within a minute")
	}
}

// A project that gets none of the shared slots says so, and how many there are.
func TestWaitForASlotIsShown(t *testing.T) {
	t.Parallel()
	busy, other := servicetest.New(t, "busy", 1), servicetest.New(t, "other", 1)
	busy.Wait()
	other.Wait()
	s, w := start(t, 1, busy, other)
	first := w.Until(t, "", journal.EventStarted, 1).Pool
	second := map[string]string{"busy": "other", "other": "busy"}[first]
	until(t, s, second, func(st service.Status) bool { return st.Starved && st.Shared == 1 && len(st.Running) == 0 })
	if st, err := s.Status(first); err != nil || st.Starved {
		t.Errorf("%+v, %v", st, err)
	}
	all := map[string]*servicetest.Project{"busy": busy, "other": other}
	all[first].Go()
	all[second].Go() // waits for its agent
	w.Until(t, "", journal.EventEnded, 2)
}
