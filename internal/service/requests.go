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

// What is asked of a forge about requests that are not open: an answer seldom changes, and each costs a list of its own.
const (
	answerAge  = 10 * time.Minute
	newAnswers = 10 // of one look
)

// answers is what is known of requests that are not open. It is not safe for concurrent use.
type answers map[answerOf]answer

type answerOf struct{ branch, run string }

type answer struct {
	at    time.Time // zero: not asked yet
	known bool
	url   string // of a request that people have closed without a merge; empty: there is none
}

// closed are the requests of runs that are not open any more, by the key: the address of one that people have closed without a
// merge, and nothing for others. Most are open, and cost one list. What is known is returned with an error, too.
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
			kept[of(r)] = (*a)[of(r)]
		}
	}
	*a = kept // without those of runs that are not asked for any more
	err := kept.renew(ctx, p, gone)
	closed := map[string]string{}
	for _, r := range gone {
		if known := kept[of(r)]; known.known {
			closed[r.Key] = known.url
		}
	}
	return closed, err
}

// renew asks for what is not known, or was asked longest ago. It ends with the first error, whose turn comes again with the others'.
func (a answers) renew(ctx context.Context, p *Parts, gone []journal.Record) error {
	due := slices.DeleteFunc(slices.Clone(gone), func(r journal.Record) bool { return time.Since(a[of(r)].at) < answerAge })
	slices.SortStableFunc(due, func(x, y journal.Record) int { return a[of(x)].at.Compare(a[of(y)].at) })
	for _, r := range due[:min(len(due), newAnswers)] {
		_, url, err := p.Pool.Refused(ctx, r.Branch, r.Base)
		if err != nil {
			old := a[of(r)]
			a[of(r)] = answer{time.Now(), old.known, old.url}
			return err
		}
		a[of(r)] = answer{time.Now(), true, url}
	}
	return nil
}

func of(r journal.Record) answerOf { return answerOf{r.Branch, r.ID} }
