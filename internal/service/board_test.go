package service_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/service/servicetest"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// only returns the only issue of a project's board.
func only(t *testing.T, s *service.Service, project string) service.Issue {
	t.Helper()
	b, err := s.Board(t.Context(), project)
	if err != nil || len(b.Wrong()) > 0 {
		t.Fatal(err, b.Wrong())
	}
	list := b.Issues(nil)
	if len(list) != 1 {
		t.Fatalf("%d issues: %+v", len(list), list)
	}
	return list[0]
}

// Finished work that waits to be merged needs a person. An issue that will be worked again does not.
func TestBoardInReview(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 1)
	s, w := start(t, 0, p)
	ended := w.Until(t, "p", journal.EventEnded, 1)
	until(t, s, "p", in(service.Waiting))
	i := only(t, s, "p")
	if i.State != service.IssueNeedsHuman || i.Code != service.CodeInReview || i.Run != ended.Run || i.Reason != "is finished and waits to be merged: ralph/task-1; `merge task-1` merges it" || i.Title != "Task 1" {
		t.Errorf("%+v", i)
	}
	p.Wait()
	if err := s.Retry(t.Context(), "p", "task-1", "Ada", false); err != nil {
		t.Fatal(err)
	}
	w.Until(t, "p", journal.EventStarted, 2)
	if i := only(t, s, "p"); i.Code == service.CodeInReview {
		t.Errorf("%+v", i)
	}
	p.Go()
}

// forge is a tracker with one open, one closed and one merged request.
type forge struct{ tracker.Tracker }

func (forge) Requests(context.Context, string) (map[string]tracker.RequestRef, error) {
	return map[string]tracker.RequestRef{"task-1": {URL: "https://forge.example/1"}}, nil
}

func (forge) RejectedHead(_ context.Context, head, base string) (commit, url string, err error) {
	if head == "ralph/task-3" {
		return "", "", nil
	}
	if head != "ralph/task-2" || base != "main" {
		return "", "", errors.New("asked for " + head + " into " + base)
	}
	return "c0ffee", "https://forge.example/2", nil
}

// A closed request does not wait to be merged.
func TestBoardClosedRequest(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 3)
	p.Forge = func(backlog tracker.Tracker) tracker.Tracker { return forge{backlog} }
	s, w := start(t, 0, p)
	w.Until(t, "p", journal.EventEnded, 3)
	until(t, s, "p", in(service.Waiting))
	runs, err := p.Store.Find(t.Context(), journal.Query{})
	for _, r := range runs {
		r.Request.URL = "https://forge.example/" + strings.TrimPrefix(r.Key, "task-")
		err = errors.Join(err, p.Store.Save(t.Context(), r))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Wake("p")
	b, err := s.Board(t.Context(), "p")
	if err != nil || len(b.Wrong()) > 0 {
		t.Fatal(err, b.Wrong())
	}
	want := map[string]string{
		"task-1": "is finished and waits to be merged: https://forge.example/1",
		"task-2": "its request was closed without a merge: https://forge.example/2; close the issue, or add the label no-human to have it worked again",
		"task-3": "its request is no longer open: https://forge.example/3; if it was merged, close the issue, or let the next sweep close it, which it does once the base has every change of the branch",
	}
	for _, i := range b.Issues(nil) {
		if i.Code != service.CodeInReview || i.Reason != want[i.Key] {
			t.Errorf("%+v", i)
		}
	}
}

// Issues that need a person show why: the agent's question, or how the run ended.
func TestBoardSaysWhy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ says, reason string }{
		{"<needs-info>Which colour?</needs-info>", "; the agent asks: Which colour?"},
		{"<no-change>It is done already</no-change>", "; the last run ended no-change: It is done already"},
	} {
		p := servicetest.New(t, "p", 1)
		p.Set("agent", "cat >/dev/null; echo '"+c.says+"'")
		s, w := start(t, 0, p)
		ended := w.Until(t, "p", journal.EventEnded, 1)
		until(t, s, "p", in(service.Waiting))
		if i := only(t, s, "p"); !strings.HasSuffix(i.Reason, c.reason) || i.Run != ended.Run {
			t.Errorf("%s: %+v", c.says, i)
		}
	}
}

// A blocked issue will continue by itself, unless it is in a cycle.
func TestBoardBlocked(t *testing.T) {
	t.Parallel()
	blocked := func(key string) backlog.Skipped {
		return backlog.Skipped{Issue: tracker.Issue{Key: key}, Skip: journal.Skip{Code: journal.SkipUnfit, Unfit: tracker.Unfit{Code: tracker.UnfitBlocked, Detail: "x"}}}
	}
	b := service.Board{Plan: backlog.Plan{Skipped: []backlog.Skipped{blocked("a"), blocked("b")}, Cycles: []tracker.Cycle{{"b", "x"}}}}
	list := b.Issues(nil)
	if list[0].State != service.IssueWaiting || list[0].Reason != "blocked by x" || list[1].State != service.IssueLeftOut {
		t.Errorf("%+v", list)
	}
}

// An issue that waits for a cap will continue by itself, and its reason names the cap.
func TestBoardCap(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 1)
	p.Set("cap", "10")
	spent := journal.Record{Run: journal.Run{ID: "r-0", Kind: journal.KindIssue, Key: "other", Started: time.Now()}, State: journal.State{Ended: time.Now()}}
	spent.Facts.Usage = agents.Usage{Input: 20}
	if err := p.Store.Save(t.Context(), spent); err != nil {
		t.Fatal(err)
	}
	s, _ := start(t, 0, p)
	until(t, s, "p", in(service.Waiting))
	if i := only(t, s, "p"); i.State != service.IssueWaiting || !strings.Contains(i.Reason, "cap for all runs is spent: 20 of 10 tokens") {
		t.Errorf("%+v", i)
	}
	if status, err := s.Status("p"); err != nil || !strings.Contains(status.Problem, "cap for all runs is spent") {
		t.Errorf("%+v, %v", status, err)
	}
}

// The problem of the last sweep disappears while the backlog is worked.
func TestProblemIsOverWhileWorking(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 1)
	p.Wait()
	p.Set("cap", "10")
	spent := journal.Record{Run: journal.Run{ID: "r-0", Kind: journal.KindIssue, Key: "other", Started: time.Now()}, State: journal.State{Ended: time.Now()}}
	spent.Facts.Usage = agents.Usage{Input: 20}
	if err := p.Store.Save(t.Context(), spent); err != nil {
		t.Fatal(err)
	}
	s, w := start(t, 0, p)
	until(t, s, "p", func(st service.Status) bool { return st.Problem != "" })
	p.Set("cap", "")
	s.Wake("p")
	w.Until(t, "p", journal.EventStarted, 1)
	if st, err := s.Status("p"); err != nil || len(st.Running) != 1 || st.Problem != "" {
		t.Errorf("%+v, %v", st, err)
	}
	p.Go()
}

// A problem is logged once, and again after another problem or after the backlog was worked.
func TestProblemIsLoggedOnce(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 1)
	p.Set("cap", "10")
	save := func(used int64) {
		spent := journal.Record{Run: journal.Run{ID: "r-0", Kind: journal.KindIssue, Key: "other", Started: time.Now()}, State: journal.State{Ended: time.Now()}}
		spent.Facts.Usage = agents.Usage{Input: used}
		if err := p.Store.Save(t.Context(), spent); err != nil {
			t.Fatal(err)
		}
	}
	save(20)
	log := &lines{}
	s := service.New(service.Config{Log: slog.New(slog.NewTextHandler(log, nil))})
	s.Apply(t.Context(), []service.Project{p.Project()}, 0)
	t.Cleanup(func() { s.Kill(); s.Wait() })
	swept := func(times int) {
		t.Helper()
		for range times {
			before, _ := s.Status("p")
			s.Wake("p")
			until(t, s, "p", func(now service.Status) bool { return now.Swept.After(before.Swept) })
		}
	}
	count := func() int { return strings.Count(log.text(), "backlog not worked") }
	if swept(4); count() != 1 {
		t.Errorf("%d times\n%s", count(), log.text())
	}
	save(30)
	if swept(3); count() != 2 {
		t.Errorf("%d times\n%s", count(), log.text())
	}
}

// hanging is a tracker that never answers. asked is closed at the first call, and ended when that call returns.
type hanging struct {
	tracker.Tracker
	asked, ended chan struct{}
}

func (h hanging) List(ctx context.Context, _ tracker.Query) (tracker.Listing, error) {
	close(h.asked)
	defer close(h.ended)
	<-ctx.Done()
	return tracker.Listing{}, context.Cause(ctx)
}

// A read of a backlog ends with the service.
func TestQueueEndsWithTheService(t *testing.T) {
	t.Parallel()
	p, h := servicetest.New(t, "p", 0).Project(), hanging{asked: make(chan struct{}), ended: make(chan struct{})}
	load := p.Load
	p.Load = func(ctx context.Context) (service.Setup, error) {
		setup, err := load(ctx)
		open := setup.Open
		setup.Open = func(ctx context.Context, observe func(journal.Event)) (*service.Parts, error) {
			parts, err := open(ctx, observe)
			if err == nil {
				h.Tracker, parts.Tracker = parts.Tracker, h
			}
			return parts, err
		}
		return setup, err
	}
	s := service.New(service.Config{})
	s.Apply(t.Context(), []service.Project{p}, 0)
	until(t, s, "p", in(service.Waiting))
	s.Queue("p")
	<-h.asked
	s.Kill()
	s.Wait()
	select {
	case <-h.ended:
	default:
		t.Error("the look at the backlog goes on")
	}
}

// lines is a log. It is safe for concurrent use.
type lines struct {
	mu sync.Mutex
	b  strings.Builder // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// An issue that only lacks the pick-up label may be retried if it was worked before.
func TestBoardUnlabelled(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 1)
	s, w := start(t, 0, p)
	ended := w.Until(t, "p", journal.EventEnded, 1)
	until(t, s, "p", in(service.Waiting))
	parts, err := s.Parts("p")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Pause("p", true, "Ada"); err != nil {
		t.Fatal(err)
	}
	p.Issue("new", "New")
	for key, labels := range map[string][]string{"task-1": {"in-review"}, "new": {"no-human"}} {
		if err := parts.Tracker.Change(t.Context(), key, tracker.Change{RemoveLabels: labels}); err != nil {
			t.Fatal(err)
		}
	}
	b, err := s.Board(t.Context(), "p")
	if err != nil || len(b.Skipped) != 2 {
		t.Fatalf("%+v, %v", b, err)
	}
	for _, i := range b.Issues(nil) {
		want := map[string]string{"task-1": ended.Run}[i.Key]
		if i.State != service.IssueLeftOut || i.Run != want || i.Retries() != (want != "") {
			t.Errorf("%+v, may be tried again: %t", i, i.Retries())
		}
	}
}

// A ready issue that was worked before may start fresh. It has no retry, because it is about to be worked anyway.
func TestReadyIssueMayStartFresh(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 2)
	p.Set("agent", `case $RALPH_ISSUE_KEY in task-1) exit 3;; esac; exec sleep 1000`)
	p.Set("parallel", "1")
	s, w := start(t, 0, p)
	w.Until(t, "p", journal.EventEnded, 1)
	w.Until(t, "p", journal.EventStarted, 2)
	p.Issue("task-1", "Said better") // ends its wait
	p.Issue("task-3", "New")
	fresh := map[string]bool{}
	servicetest.Eventually(t, func() bool {
		b, err := s.Board(t.Context(), "p")
		for _, i := range b.Issues(nil) {
			fresh[i.Key] = i.Fresh()
		}
		_, read := fresh["task-3"]
		return err == nil && read
	})
	if !fresh["task-1"] || fresh["task-3"] {
		t.Errorf("may start fresh: %v", fresh)
	}
}

// The sample issue is called a sample, as in the CLI.
func TestBoardKnowsTheSample(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 0)
	s, _ := start(t, 0, p)
	until(t, s, "p", in(service.Waiting))
	parts, err := s.Parts("p")
	if err != nil {
		t.Fatal(err)
	}
	parts.Sample = func(k backlog.Skipped) string {
		return map[string]string{"Sample": "a sample"}[k.Issue.Title]
	}
	for key, title := range map[string]string{"one": "Sample", "two": "Mine"} {
		p.Issue(key, title)
		if err := parts.Tracker.Change(t.Context(), key, tracker.Change{RemoveLabels: []string{"no-human"}}); err != nil {
			t.Fatal(err)
		}
	}
	b, err := s.Board(t.Context(), "p")
	if err != nil || len(b.Skipped) != 2 {
		t.Fatalf("%+v, %v", b, err)
	}
	for _, i := range b.Issues(nil) {
		if want := map[string]string{"one": "a sample", "two": "lacks label no-human"}[i.Key]; i.Reason != want {
			t.Errorf("%s: %q, want %q", i.Key, i.Reason, want)
		}
	}
}
