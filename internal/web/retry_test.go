package web_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/service/servicetest"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

// The response to a retry says that the agent is unavailable, until when and why.
func TestRetryTellsOfParkedAgents(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "shop", 1)
	s := start(t, nil, p)
	s.watch.Until(t, "shop", journal.EventEnded, 1)
	list, err := p.Store.Find(t.Context(), journal.Query{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	r, until := list[0], time.Now().Add(3*time.Hour).Round(0)
	r.ID, r.Started, r.Ended = "limited", time.Now(), time.Now()
	r.Facts.CompletedAt, r.Facts.Iterations = r.Ended, []loop.Iteration{{
		Number: 1, Agent: r.Agent, Model: r.Model, Ended: r.Ended, Failure: &agents.Failure{Class: agents.RateLimit, ResetAt: until},
	}}
	if err := p.Store.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	res := s.do(http.MethodPost, "/v1/projects/shop/issues/task-1/retry")
	var got struct {
		Until  time.Time
		Reason string
	}
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil || !got.Until.Equal(until) || !strings.Contains(got.Reason, "its limit is reached") {
		t.Errorf("%s: %+v, %v", res.Status, got, err)
	}
}

// A service that ends takes no request to work an issue: it would do nothing, and the next start may be far away.
func TestNothingIsAskedOfAnEndingService(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "shop", 1)
	p.Wait()
	s := start(t, nil, p)
	s.watch.Until(t, "shop", journal.EventStarted, 1)
	s.service.Drain()
	for _, with := range []string{"retry", "retry?fresh=true"} {
		res := s.do(http.MethodPost, "/v1/projects/shop/issues/task-1/"+with)
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusConflict || !strings.Contains(string(text), "starts nothing more") {
			t.Errorf("%s: %s: %s, %v", with, res.Status, text, err)
		}
	}
	if err := s.service.Fix(t.Context(), "shop", "task-1", "a person", "more"); !errors.Is(err, service.ErrDraining) {
		t.Errorf("fix: %v", err)
	}
	res := s.do(http.MethodGet, "/readyz")
	if text, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusServiceUnavailable || string(text) != "draining\n" {
		t.Errorf("readyz: %s: %s, %v", res.Status, text, err)
	}
	p.Go()
}
