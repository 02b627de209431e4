package cli

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
)

// issueRetry is an issue that is tried again.
type issueRetry struct {
	Issue   string    `json:"issue"`
	Title   string    `json:"title"`
	Run     string    `json:"run"`
	Attempt int       `json:"attempt"`
	Outcome string    `json:"outcome"`
	Reason  string    `json:"reason,omitempty"`
	RetryAt time.Time `json:"retry_at"`
}

// retryQueue lists what waits for another attempt, the next first.
func retryQueue(states []runState, now time.Time) []issueRetry {
	list := []issueRetry{}
	for _, s := range states {
		if v := s.Verdict; !s.Ended.IsZero() && !v.Final && v.RetryAt.After(now) && s.State == string(v.Outcome) {
			list = append(list, issueRetry{s.Key, s.Title, s.ID, s.Attempt, string(v.Outcome), report.Reason(v.Reason), v.RetryAt})
		}
	}
	slices.SortFunc(list, func(a, b issueRetry) int {
		return cmp.Or(a.RetryAt.Compare(b.RetryAt), cmp.Compare(a.Issue, b.Issue))
	})
	return list
}

// totals are of all runs of the repository on this host, or in its fleet.
type totals struct {
	Usage          agents.Usage `json:"usage"`
	Running        int          `json:"running"`
	RunningSeconds float64      `json:"running_seconds"`
}

func (a *app) totals(ctx context.Context, p *parts, o memberOptions, states []runState, now time.Time) (t totals, err error) {
	var running []journal.Record
	for _, s := range states {
		if s.State == "running" {
			running = append(running, s.Record)
		}
	}
	all := journal.Store(p.journal)
	database, name, err := a.member(ctx, p, o)
	if err != nil {
		return t, err
	}
	if database != nil {
		defer database.Close()
		all = database.Runs(name)
		if running, err = database.Running(ctx, name); err != nil {
			return t, err
		}
	}
	for _, r := range running {
		t.Running++
		t.RunningSeconds += now.Sub(r.Started).Seconds()
	}
	t.Usage, err = all.Spent(ctx, "", time.Time{})
	return t, err
}
