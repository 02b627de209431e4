package service

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// Limits of queries to a forge about closed requests: the answers seldom change, and each needs its own list.
const (
	answerAge  = 10 * time.Minute
	newAnswers = 10 // queries per look
)

// answers caches what is known about requests that are no longer open. It is not safe for concurrent use.
type answers map[requestID]answer

type requestID struct{ branch, run string }

type answer struct {
	at    time.Time // zero: not asked yet
	known bool
	url   string // URL of a request that people closed without a merge; empty: there is none
}

// closed returns the runs, by issue key, whose requests are no longer open: with the URL of a request that people closed without
// a merge, otherwise with "". Most requests are open, and one list shows them all. Known results are returned even with an error.
func (a *answers) closed(ctx context.Context, p *Parts, runs []journal.Record) (map[string]string, error) {
	lister, ok := tracker.As[tracker.RequestLister](p.Tracker)
	if !ok {
		return nil, nil
	}
	open, kept := map[string]map[string]tracker.RequestRef{}, answers{}
	var gone []journal.Record
	for _, r := range runs {
		prefix := strings.TrimSuffix(r.Branch, r.Key)
		if open[prefix] == nil {
			list, err := lister.Requests(ctx, prefix)
			if err != nil {
				return nil, fmt.Errorf("list open requests: %w", err)
			}
			open[prefix] = list
		}
		if _, is := open[prefix][r.Key]; !is {
			gone = append(gone, r)
			kept[requestOf(r)] = (*a)[requestOf(r)]
		}
	}
	*a = kept // drops answers about other runs
	err := kept.renew(ctx, p, gone)
	closed := map[string]string{}
	for _, r := range gone {
		if known := kept[requestOf(r)]; known.known {
			closed[r.Key] = known.url
		}
	}
	return closed, err
}

// renew queries unknown answers and those that were queried longest ago. It stops at the first error. The failed query is
// retried with the other outdated ones.
func (a answers) renew(ctx context.Context, p *Parts, gone []journal.Record) error {
	due := slices.DeleteFunc(slices.Clone(gone), func(r journal.Record) bool { return time.Since(a[requestOf(r)].at) < answerAge })
	slices.SortStableFunc(due, func(x, y journal.Record) int { return a[requestOf(x)].at.Compare(a[requestOf(y)].at) })
	for _, r := range due[:min(len(due), newAnswers)] {
		_, url, err := p.Pool.RejectedHead(ctx, r.Branch, r.Base)
		if err != nil {
			old := a[requestOf(r)]
			a[requestOf(r)] = answer{time.Now(), old.known, old.url}
			return err
		}
		a[requestOf(r)] = answer{time.Now(), true, url}
	}
	return nil
}

func requestOf(r journal.Record) requestID { return requestID{r.Branch, r.ID} }
