package service_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/service/servicetest"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// merged is a tracker whose requests are all merged. It records queries, and fails for one branch.
type merged struct {
	tracker.Tracker
	asked map[string]int
	fails string
}

func (*merged) Requests(context.Context, string) (map[string]tracker.RequestRef, error) {
	return map[string]tracker.RequestRef{}, nil
}

func (m *merged) RejectedHead(_ context.Context, head, _ string) (commit, url string, err error) {
	m.asked[head]++
	if head == m.fails {
		err = errors.New("the forge is away")
	}
	return "", "", err
}

// A read of the board queries few closed requests, each of them rarely, and succeeds without those that cannot be queried.
func TestBoardAsksLittle(t *testing.T) {
	t.Parallel()
	const issues = 15
	p, forge, log := servicetest.New(t, "p", 0), &merged{asked: map[string]int{}}, &lines{}
	p.Forge = func(backlog tracker.Tracker) tracker.Tracker { forge.Tracker = backlog; return forge }
	s := service.New(service.Config{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	s.Apply(t.Context(), []service.Project{p.Project()}, 0)
	t.Cleanup(func() { s.Kill(); s.Wait() })
	until(t, s, "p", in(service.Waiting))
	if err := s.Pause("p", true, "Ada"); err != nil {
		t.Fatal(err)
	}
	for n := range issues {
		key := "task-" + strconv.Itoa(n)
		p.Issue(key, key)
		r := journal.Record{Run: journal.Run{ID: "r-" + key, Kind: journal.KindIssue, Key: key, Branch: "ralph/" + key, Base: "main", Started: time.Now()}}
		r.Ended, r.Request.URL = time.Now(), "https://forge.example/"+key
		err := forge.Change(t.Context(), key, tracker.Change{AddLabels: []string{"in-review"}, RemoveLabels: []string{"no-human"}})
		if err = errors.Join(err, p.Store.Save(t.Context(), r)); err != nil {
			t.Fatal(err)
		}
	}
	look := func(asked, told int) {
		t.Helper()
		err := s.Moved("p")
		b, failed := s.Board(t.Context(), "p")
		if err = errors.Join(err, failed); err != nil || len(b.Wrong()) > 0 || len(b.Review) != issues {
			t.Fatalf("%+v, %v", b, err)
		}
		got, sum := 0, 0
		for _, r := range b.Review {
			if r.Gone {
				got++
			}
		}
		for _, n := range forge.asked {
			sum += n
		}
		if sum != asked || got != told {
			t.Errorf("asked %d times, want %d; %d are told, want %d", sum, asked, got, told)
		}
	}
	look(10, 10)
	for n := range issues {
		if head := "ralph/task-" + strconv.Itoa(n); forge.asked[head] == 0 {
			forge.fails = head
		}
	}
	look(15, 14) // the last query fails, and is repeated later
	look(15, 14)
	if !strings.Contains(log.text(), "the forge is away") {
		t.Errorf("not logged:\n%s", log.text())
	}
}
