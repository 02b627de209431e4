package pool_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
)

// hangingTracker is a tracker one of whose methods returns only when its context ends.
type hangingTracker struct {
	tracker.Tracker

	method string
	asked  chan struct{}
}

func (h hangingTracker) wait(ctx context.Context, method string) error {
	if h.method != method {
		return nil
	}
	h.asked <- struct{}{}
	<-ctx.Done()
	return context.Cause(ctx)
}

func (h hangingTracker) List(ctx context.Context, q tracker.Query) (tracker.Listing, error) {
	if err := h.wait(ctx, "list"); err != nil {
		return tracker.Listing{}, err
	}
	return h.Tracker.List(ctx, q)
}

func (h hangingTracker) Get(ctx context.Context, key string) (tracker.Issue, error) {
	if err := h.wait(ctx, "get"); err != nil {
		return tracker.Issue{}, err
	}
	return h.Tracker.Get(ctx, key)
}

func (h hangingTracker) Report(ctx context.Context, key string, r tracker.Report) error {
	if err := h.wait(ctx, "report"); err != nil {
		return err
	}
	return h.Tracker.Report(ctx, key, r)
}

func (h hangingTracker) Change(ctx context.Context, key string, c tracker.Change) error {
	if err := h.wait(ctx, "change"); err != nil {
		return err
	}
	return h.Tracker.Change(ctx, key, c)
}

func (h hangingTracker) RejectedHead(ctx context.Context, _, _ string) (commit, url string, err error) {
	return "", "", h.wait(ctx, "refused")
}

// Kill ends a sweep and a single run that wait for a tracker that does not answer, and nothing starts after it.
func TestKillDoesNotWaitForTheTracker(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"list", "get", "report", "change"} {
		for _, one := range []bool{false, true} {
			if one && method == "list" {
				continue // Work does not list
			}
			name := method + " of a sweep"
			if one {
				name = method + " of one"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, commits)
				f.issue("a")
				h := hangingTracker{f.Config.Run.Tracker, method, make(chan struct{}, 100)}
				f.Config.Run.Tracker = h
				p := f.pool()
				ended := make(chan error)
				go func() {
					var err error
					if one {
						_, err = p.Work(context.WithoutCancel(t.Context()), "a")
					} else {
						var s pool.Summary
						if s, err = p.Sweep(context.WithoutCancel(t.Context())); !s.Interrupted {
							t.Errorf("not interrupted: %+v", s)
						}
					}
					ended <- err
				}()
				<-h.asked
				p.Kill()
				if err := <-ended; err != nil && !one {
					t.Error(err)
				}
				if _, err := p.Work(t.Context(), "a"); !errors.Is(err, pool.ErrEnded) {
					t.Errorf("after Kill: %v", err)
				}
				if r := p.MergeAll(t.Context(), []string{"a"}); len(r) != 1 || !errors.Is(r[0].Err, pool.ErrEnded) {
					t.Errorf("merged after Kill: %+v", r)
				}
			})
		}
	}
	f := newFixture(t, commits)
	f.issue("a")
	p := f.pool()
	p.Drain()
	if _, err := p.WorkPlanned(t.Context(), "a", nil); !errors.Is(err, pool.ErrEnded) {
		t.Errorf("after Drain: %v", err)
	}
}

// slowCloseProvider is a provider whose sandboxes do not close until the context ends.
type slowCloseProvider struct{ sandboxes.Provider }

func (l slowCloseProvider) Open(ctx context.Context, s sandboxes.Spec) (sandboxes.Sandbox, error) {
	box, err := l.Provider.Open(ctx, s)
	return slowCloseBox{box}, err
}

type slowCloseBox struct{ sandboxes.Sandbox }

func (b slowCloseBox) Close(ctx context.Context) error {
	<-ctx.Done()
	return errors.Join(context.Cause(ctx), b.Sandbox.Close(context.WithoutCancel(ctx)))
}

// A sandbox that does not close in time after Kill is left to the next start, with the claim, and nothing is lost.
func TestKillLeavesASandboxThatDoesNotClose(t *testing.T) {
	t.Parallel()
	f := newFixture(t, endless)
	f.issue("a")
	sandbox, agent := f.Config.Run.Sandboxes, f.Config.Run.Options.Command
	f.Config.Run.Sandboxes = slowCloseProvider{sandbox}
	p := f.pool()
	f.onStarted(func(string) { p.Kill() })
	if s, err := p.Sweep(t.Context()); err != nil || len(s.Runs) != 1 || !s.Runs[0].Ended.IsZero() || s.Runs[0].PID != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	f.Config.Run.Sandboxes = sandbox
	f.Config.Run.Options.Command = append(agent[:len(agent)-1:len(agent)-1], commits)
	if s := f.sweep(t.Context()); outcomes(s)["a"] != journal.Succeeded {
		t.Errorf("%+v", s)
	}
	if first := f.runs("a")[0]; first.Verdict.Outcome != journal.Interrupted || first.Commits != 1 {
		t.Errorf("%+v", first)
	}
	f.clean()
}

// Kill leaves neither claim nor record of a run that waits between its claim and its snapshot. Another pool of the same process
// can work the issue at once.
func TestKillBeforeTheSnapshot(t *testing.T) {
	t.Parallel()
	for name, remote := range map[string]bool{"claims here": false, "claims on a remote": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			if remote {
				f.withRemote()
			}
			f.issue("a")
			answers := f.Config.Run.Tracker
			h := hangingTracker{answers, "get", make(chan struct{}, 100)}
			f.Config.Run.Tracker = h
			p, ended := f.pool(), make(chan pool.Summary)
			go func() {
				s, err := p.Sweep(context.WithoutCancel(t.Context()))
				if err != nil {
					t.Error(err)
				}
				ended <- s
			}()
			<-h.asked
			p.Kill()
			if s := <-ended; len(s.Broken) > 0 || skips(s)["a"] != journal.SkipStopped {
				t.Errorf("broken %+v, skipped %+v", s.Broken, s.Skipped)
			}
			if runs := f.runs("a"); len(runs) > 0 {
				t.Errorf("records are left: %+v", runs)
			}
			f.clean()
			f.Config.Run.Tracker = answers
			if r := f.one(); r.Verdict.Outcome != journal.Succeeded {
				t.Errorf("%+v", r.Verdict)
			}
		})
	}
}

// Every call returns an UnknownKeyError for a key that names no issue.
func TestUnknownKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	p := f.pool()
	_, swept := p.Sweep(t.Context(), "none")
	_, worked := p.Work(t.Context(), "none")
	_, planned := p.Plan(t.Context(), "none")
	_, prompted := p.Prompt(t.Context(), "none")
	for name, err := range map[string]error{
		"Sweep": swept, "Work": worked, "Plan": planned, "Prompt": prompted,
		"Requeue": p.Requeue(t.Context(), "none", "a person", tracker.Retry, ""), "MergeAll": p.MergeAll(t.Context(), []string{"none"})[0].Err,
	} {
		unknown, ok := errors.AsType[*backlog.UnknownKeyError](err)
		if !ok || unknown.Key != "none" || !errors.Is(err, tracker.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Work serves a caller who has decided: the limit of sweeps and Drain do not stop it.
func TestWorkNeedsNoSlot(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	p := f.pool()
	p.SetParallel(0)
	p.Drain()
	if r, err := p.Work(t.Context(), "a"); err != nil || r.Record.Verdict.Outcome != journal.Succeeded {
		t.Errorf("%+v, %v", r, err)
	}
}

// Kill ends the calls that work no issue; after it they write nothing.
func TestKillEndsOtherCalls(t *testing.T) {
	t.Parallel()
	calls := map[string]func(*pool.Pool, context.Context) error{
		"Plan":            func(p *pool.Pool, ctx context.Context) error { _, err := p.Plan(ctx); return err },
		"Preview":         func(p *pool.Pool, ctx context.Context) error { _, err := p.Preview(ctx); return err },
		"Maintain":        func(p *pool.Pool, ctx context.Context) error { _, err := p.Maintain(ctx); return err },
		"Unmerged":        func(p *pool.Pool, ctx context.Context) error { _, err := p.Unmerged(ctx); return err },
		"Parked":          func(p *pool.Pool, ctx context.Context) error { _, err := p.Parked(ctx); return err },
		"AgentsToWaitFor": func(p *pool.Pool, ctx context.Context) error { _, err := p.AgentsToWaitFor(ctx); return err },
		"Prompt":          func(p *pool.Pool, ctx context.Context) error { _, err := p.Prompt(ctx, "a"); return err },
		"Requeue": func(p *pool.Pool, ctx context.Context) error {
			return p.Requeue(ctx, "a", "a person", tracker.Retry, "")
		},
		"RejectedHead": func(p *pool.Pool, ctx context.Context) error {
			_, _, err := p.RejectedHead(ctx, "ralph/a", "main")
			return err
		},
	}
	work := []string{"Sweep", "Work", "WorkPlanned", "Merge", "MergeAll", "Recover"}
	for all, i := reflect.TypeFor[*pool.Pool](), 0; i < all.NumMethod(); i++ {
		m := all.Method(i)
		if calls[m.Name] == nil && !slices.Contains(work, m.Name) && m.Type.NumIn() > 1 && m.Type.In(1) == reflect.TypeFor[context.Context]() {
			t.Errorf("%s is not tried", m.Name)
		}
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.issue("a")
			waits := map[string]string{"Plan": "list", "Preview": "list", "Maintain": "list", "Prompt": "get", "Requeue": "get", "RejectedHead": "refused"}[name]
			h := hangingTracker{f.Config.Run.Tracker, waits, make(chan struct{}, 100)}
			f.Config.Run.Tracker = h
			p := f.pool()
			if waits != "" {
				ended := make(chan error)
				go func() { ended <- call(p, context.WithoutCancel(t.Context())) }()
				<-h.asked
				p.Kill()
				if err := <-ended; !errors.Is(err, pool.ErrEnded) {
					t.Errorf("during Kill: %v", err)
				}
			}
			p.Kill()
			if err := call(p, t.Context()); !errors.Is(err, pool.ErrEnded) || len(h.asked) > 0 {
				t.Errorf("after Kill: %v", err)
			}
		})
	}
}

// A call whose context has ended works nothing, and that is no error.
func TestCallsWithAContextThatIsOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	p := f.pool()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	for name, call := range map[string]func() (pool.Result, error){
		"Work":        func() (pool.Result, error) { return p.Work(ctx, "a") },
		"WorkPlanned": func() (pool.Result, error) { return p.WorkPlanned(ctx, "a", nil) },
		"Merge":       func() (pool.Result, error) { return p.Merge(ctx, "a") },
	} {
		if r, err := call(); err != nil || r.Issue.Key != "a" || r.Skip == nil || r.Skip.Code != journal.SkipStopped {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// A pool that starts no more runs demands no slot.
func TestEndedPoolHasNoDemand(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*pool.Pool){"Drain": (*pool.Pool).Drain, "Kill": func(p *pool.Pool) { p.Kill() }} {
		p := newFixture(t, commits).pool()
		if p.MaxAtOnce() == 0 {
			t.Error("a pool that sweeps nothing yet has no demand")
		}
		if end(p); p.MaxAtOnce() != 0 {
			t.Errorf("after %s: %d", name, p.MaxAtOnce())
		}
	}
}
