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

// Board is the backlog of a project as a sweep would see it.
type Board struct {
	backlog.Plan
	Review  []Reviewed
	Said    map[string]string // how the latest run of an issue ended that a person is next for; may be hostile
	At      time.Time         // when it was read; zero: not yet
	Problem string            // why it could not be looked at since; empty: it could
}

// Reviewed is an open issue whose work is finished and waits for a person to merge it.
type Reviewed struct {
	tracker.Issue
	Run   string // the latest; empty: this host does not know it
	Where string // its request, or its branch; empty: not known
	Merge string // the command that merges it; empty: none, such as where it has a request
	// Again is the label that has it done anew, where its request was closed without a merge.
	Again string
	// Gone: ralph has no open request for it any more, and people have not closed one without a merge. It may be merged, deleted, or
	// of another account.
	Gone bool
}

// boardAge is how long a look at the backlog serves: a tracker on the network has a limit of requests.
const boardAge = 10 * time.Second

// boardTime bounds one look.
const boardTime = 20 * time.Second

// Board looks at the backlog of a project, at most every ten seconds unless a run has begun or ended. Callers wait for the one who looks.
func (s *Service) Board(ctx context.Context, name string) (Board, error) {
	p, parts, err := s.opened(name)
	if err != nil {
		return Board{}, err
	}
	p.looking.Lock()
	defer p.looking.Unlock()
	if !p.moved.Swap(false) && time.Since(p.looked) < boardAge {
		return p.board, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), boardTime)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	began := time.Now()
	plan, err := parts.Pool.Plan(ctx)
	var said map[string]string
	if err == nil {
		said, err = parts.earlier(ctx, plan.Skipped)
	}
	var review []Reviewed
	if err == nil {
		review, err = p.inReview(ctx, parts)
	}
	if err != nil {
		p.board.Problem = OneLine(err)
	} else {
		p.board = Board{Plan: plan, Review: review, Said: said, At: began}
		p.queue.Store(newQueue(plan))
	}
	p.looked = time.Now()
	return p.board, nil
}

// inReview lists what waits to be merged. An issue with the pick-up label is to be worked again. p.looking is held.
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
	if err != nil { // the board is right without it
		p.s.c.Log.Debug("requests that are not open not looked up", "project", p.name, "error", err)
	}
	for key, url := range closed {
		if out[at[key]].Gone = url == ""; url != "" {
			out[at[key]].Where, out[at[key]].Again = url, parts.PickUp
		}
	}
	return out, nil
}

// earlier notes the latest run of each issue that does not qualify, or that a person is next for, and of the latter how it ended.
func (p *Parts) earlier(ctx context.Context, list []backlog.Skipped) (map[string]string, error) {
	at := map[string]int{}
	for n, s := range list {
		if slices.Contains([]journal.SkipCode{journal.SkipUnfit, journal.SkipHuman, journal.SkipAnswer}, s.Skip.Code) {
			at[s.Issue.Key] = n
		}
	}
	if len(at) == 0 {
		return nil, nil
	}
	said := map[string]string{}
	runs, err := p.Store.Find(ctx, journal.Query{Keys: slices.Collect(maps.Keys(at)), Kind: journal.KindIssue, Latest: true})
	for _, r := range runs {
		n, ok := at[r.Key]
		if !ok {
			continue
		}
		list[n].Skip.Run = r.ID
		switch outcome := r.Verdict.Outcome; {
		case list[n].Skip.Code == journal.SkipAnswer && outcome == journal.NeedsInfo:
			said[r.Key] = "the agent asks: " + r.Verdict.Reason.Detail
		case list[n].Skip.Code == journal.SkipHuman && r.Verdict.Final && outcome != journal.Succeeded:
			said[r.Key] = strings.TrimSuffix("the last run ended "+string(outcome)+": "+report.Reason(r.Verdict.Reason), ": ")
		}
	}
	return said, err
}

// Queue are the issues of a project that are ready.
type Queue struct {
	Ready  int
	Oldest time.Time // when the first of them was made; zero: not known
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

// queueAge is how long a count of ready issues serves those who only count.
const queueAge = 5 * time.Minute

// Queue counts the issues of a project that were ready some minutes ago; nil: it is not known yet. It does not block.
func (s *Service) Queue(name string) *Queue {
	p, _, err := s.opened(name)
	if err != nil {
		return nil
	}
	q := p.queue.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	if (q == nil || time.Since(q.at) > queueAge) && s.life.Err() == nil && p.counting.CompareAndSwap(false, true) {
		s.looks.Go(func() {
			defer p.counting.Store(false)
			_, _ = s.Board(s.life, name) // the board has the error
		})
	}
	return q
}
