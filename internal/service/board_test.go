package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/service/servicetest"
	"github.com/ralph-pool/ralph/pool/journal"
)

// only is the one issue of a project's board.
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

// Finished work that waits to be merged waits for a person; one that is to be worked again does not.
func TestBoardInReview(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 1)
	s, w := start(t, 0, p)
	ended := w.Until(t, "p", journal.EventEnded, 1)
	servicetest.Eventually(t, func() bool { status, err := s.Status("p"); return err == nil && status.State == service.Waiting })
	i := only(t, s, "p")
	if i.State != service.IssueNeedsHuman || i.Code != service.CodeInReview || i.Run != ended.Run || i.Reason != "is finished and waits to be merged: ralph/task-1" || i.Title != "Task 1" {
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

// What waits for a cap goes on by itself, and says what it waits for.
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
	servicetest.Eventually(t, func() bool { status, err := s.Status("p"); return err == nil && status.State == service.Waiting })
	if i := only(t, s, "p"); i.State != service.IssueWaiting || !strings.Contains(i.Reason, "cap for all runs is spent: 20 of 10 tokens") {
		t.Errorf("%+v", i)
	}
	if status, err := s.Status("p"); err != nil || !strings.Contains(status.Problem, "cap for all runs is spent") {
		t.Errorf("%+v, %v", status, err)
	}
}
