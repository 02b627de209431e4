package service

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
)

// Board is a project's backlog as a sweep would see it.
type Board struct {
	backlog.Plan
	Review  []Reviewed
	Samples map[string]string // by key: what Parts.Sample returns
	Ran     map[string]string // by key: id of the latest run of a ready issue
	Said    map[string]string // by key, for issues that wait for a person: how the latest run ended; untrusted text
	At      time.Time         // time of the data; zero: none yet
	Problem string            // error of the latest read; empty: it succeeded
}

// Reviewed is an open issue whose work is finished and waits to be merged.
type Reviewed struct {
	tracker.Issue
	Run   string // id of the latest run; empty: this host has no record
	Where string // URL of its request, or its branch; empty: unknown
	Merge string // command that merges it; empty: none, for example because it has a request
	// Again is the label that makes ralph redo the work. It is set if people closed the request without a merge.
	Again string
	// Gone means that no request of ralph is open, and that people did not close one without a merge. The request may be
	// merged, deleted, or belong to another account.
	Gone bool
}

// boardAge is how long a board is reused: trackers on the network have rate limits.
const boardAge = 10 * time.Second

// boardTime limits one read of the backlog.
const boardTime = 20 * time.Second

// Board returns the backlog of a project. It reads it at most every ten seconds, or after a run has started or ended.
// Concurrent callers share one read.
func (s *Service) Board(ctx context.Context, name string) (Board, error) {
	p, parts, err := s.opened(name)
	if err != nil {
		return Board{}, err
	}
	p.boardMu.Lock()
	defer p.boardMu.Unlock()
	if !p.boardOutdated.Swap(false) && time.Since(p.boardTriedAt) < boardAge {
		return p.board, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), boardTime)
	defer cancel()
	defer context.AfterFunc(s.readContext, cancel)()
	began := time.Now()
	plan, err := parts.Pool.Plan(ctx)
	var reasons, ran map[string]string
	if err == nil {
		reasons, err = parts.addLatestRuns(ctx, plan.Skipped)
	}
	if err == nil {
		ran, err = parts.latestRuns(ctx, plan.Work)
	}
	var review []Reviewed
	if err == nil {
		review, err = p.inReview(ctx, parts)
	}
	if err != nil {
		p.board.Problem = OneLine(err)
	} else {
		p.board = Board{Plan: plan, Review: review, Said: reasons, Ran: ran, At: began, Samples: map[string]string{}}
		for _, skipped := range plan.Skipped {
			if parts.Sample != nil {
				p.board.Samples[skipped.Issue.Key] = parts.Sample(skipped)
			}
		}
		p.queue.Store(newQueue(plan))
	}
	p.boardTriedAt = time.Now()
	return p.board, nil
}

// inReview lists issues that wait to be merged. It leaves out those with the pick-up label, which ralph will work again. The
// caller holds boardMu.
func (p *project) inReview(ctx context.Context, parts *Parts) (out []Reviewed, err error) {
	label := parts.InReview
	if label == "" {
		return nil, nil
	}
	list, err := parts.Tracker.List(ctx, tracker.Query{Labels: []string{label}, Unworked: []string{label}})
	if err != nil {
		return nil, fmt.Errorf("list issues in review: %w", err)
	}
	at := map[string]int{}
	for _, i := range list.Issues {
		if i.Open && i.HasLabel(label) && !i.HasLabel(parts.PickUp) {
			at[i.Key] = len(out)
			out = append(out, Reviewed{Issue: i})
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	runs, err := parts.Store.Find(ctx, journal.Query{Keys: slices.Collect(maps.Keys(at)), Kind: journal.KindIssue, Latest: true})
	var requests []journal.Record
	for _, r := range runs {
		if n, ok := at[r.Key]; ok {
			out[n].Run, out[n].Where = r.ID, cmp.Or(r.Request.URL, r.Branch)
			if r.Request.URL != "" {
				requests = append(requests, r)
			} else if r.Branch != "" {
				out[n].Merge = strings.ReplaceAll(parts.Merge, "KEY", r.Key)
			}
		}
	}
	if err != nil || len(requests) == 0 {
		return out, err
	}
	closed, err := p.answers.closed(ctx, parts, requests)
	if err != nil { // the board is still useful
		p.s.c.Log.Debug("requests that are not open not looked up", "project", p.name, "error", err)
	}
	for key, url := range closed {
		if out[at[key]].Gone = url == ""; url != "" {
			out[at[key]].Where, out[at[key]].Again = url, parts.PickUp
		}
	}
	return out, nil
}

// latestRuns returns the ids of the issues' latest runs, by key.
func (p *Parts) latestRuns(ctx context.Context, list []tracker.Issue) (map[string]string, error) {
	var keys []string
	for _, i := range list {
		keys = append(keys, i.Key)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	runs, err := p.Store.Find(ctx, journal.Query{Keys: keys, Kind: journal.KindIssue, Latest: true})
	out := map[string]string{}
	for _, r := range runs {
		out[r.Key] = r.ID
	}
	return out, err
}

// addLatestRuns sets the latest run of skipped issues that do not qualify or wait for a person. For the latter it also returns how
// that run ended.
func (p *Parts) addLatestRuns(ctx context.Context, list []backlog.Skipped) (map[string]string, error) {
	at := map[string]int{}
	for n, s := range list {
		if slices.Contains([]journal.SkipCode{journal.SkipUnfit, journal.SkipHuman, journal.SkipAnswer}, s.Skip.Code) {
			at[s.Issue.Key] = n
		}
	}
	if len(at) == 0 {
		return nil, nil
	}
	reasons := map[string]string{}
	runs, err := p.Store.Find(ctx, journal.Query{Keys: slices.Collect(maps.Keys(at)), Kind: journal.KindIssue, Latest: true})
	for _, r := range runs {
		n, ok := at[r.Key]
		if !ok {
			continue
		}
		list[n].Skip.Run = r.ID
		switch outcome := r.Verdict.Outcome; {
		case list[n].Skip.Code == journal.SkipAnswer && outcome == journal.NeedsInfo:
			reasons[r.Key] = "the agent asks: " + r.Verdict.Reason.Detail
		case list[n].Skip.Code == journal.SkipHuman && r.Verdict.Final && outcome != journal.Succeeded:
			reasons[r.Key] = strings.TrimSuffix("the last run ended "+string(outcome)+": "+report.Reason(r.Verdict.Reason), ": ")
		}
	}
	return reasons, err
}

// Queue describes the issues of a project that are ready.
type Queue struct {
	Ready  int
	Oldest time.Time // creation time of the oldest one; zero: unknown
	at     time.Time
}

func newQueue(plan backlog.Plan) *Queue {
	q := &Queue{Ready: len(plan.Work), at: time.Now()}
	for _, i := range plan.Work {
		if made := cmp.Or(i.Created, i.Updated); !made.IsZero() && (q.Oldest.IsZero() || made.Before(q.Oldest)) {
			q.Oldest = made
		}
	}
	return q
}

// queueAge is how long Queue reuses a count.
const queueAge = 5 * time.Minute

// Queue returns a count of ready issues that may be some minutes old, or nil if there is none yet. It does not block: it
// refreshes the count in the background.
func (s *Service) Queue(name string) *Queue {
	p, _, err := s.opened(name)
	if err != nil {
		return nil
	}
	q := p.queue.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	if (q == nil || time.Since(q.at) > queueAge) && s.readContext.Err() == nil && p.queueReading.CompareAndSwap(false, true) {
		s.boardReads.Go(func() {
			defer p.queueReading.Store(false)
			_, _ = s.Board(s.readContext, name) // the board stores the error
		})
	}
	return q
}
