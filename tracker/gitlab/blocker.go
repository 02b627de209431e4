package gitlab

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

var (
	blockedLine = regexp.MustCompile(`(?im)\bblocked by:?[ \t]+(#\d{1,9}\b(?:(?:[ \t]*(?:,|and)[ \t]*)+#\d{1,9}\b)*)`)
	reference   = regexp.MustCompile(`#(\d{1,9})\b`)
)

// maxNamed bounds the blockers that a text can name: each may cost a request.
const maxNamed = 50

// named are the numbers of the issues that a text says must be closed first, such as in "blocked by #12 and #13". Only
// issues of the same project can be named: text by strangers must not make ralph look elsewhere.
func named(body string, self int) []int {
	var out []int
	for _, line := range blockedLine.FindAllStringSubmatch(body, -1) {
		for _, ref := range reference.FindAllStringSubmatch(line[1], -1) {
			n, err := strconv.Atoi(ref[1])
			if err == nil && n > 0 && n != self && !slices.Contains(out, n) && len(out) < maxNamed {
				out = append(out, n)
			}
		}
	}
	return out
}

// blockers are what has to be closed before the issue: what its text names and what it is linked to, the latter in any
// project.
func (t *Tracker) blockers(ctx context.Context, i issue) ([]tracker.Blocker, error) {
	numbers := named(i.Body, i.IID)
	states, err := t.states(ctx, numbers)
	if err != nil {
		return nil, err
	}
	out := known(numbers, states)
	links, err := t.links(ctx, i.IID)
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		if l.LinkType != "is_blocked_by" {
			continue
		}
		b := tracker.Blocker{Key: strconv.Itoa(l.IID), Open: l.State != "closed"}
		if l.ProjectID != i.ProjectID {
			b.Key = tracker.Key(l.References.Full)
		}
		if !slices.ContainsFunc(out, func(have tracker.Blocker) bool { return have.Key == b.Key }) {
			out = append(out, b)
		}
	}
	return out, nil
}

// links are the issues that an issue is linked to. Where an instance or a role has no links, there are none.
func (t *Tracker) links(ctx context.Context, iid int) ([]issue, error) {
	var links []issue
	err := t.stack.Twice(ctx, func(ctx context.Context) (err error) {
		links, err = pages[issue](ctx, t, t.project("/issues/%d/links", iid), nil)
		return err
	})
	switch forge.Status(err) {
	case http.StatusForbidden, http.StatusNotFound:
		return nil, nil
	}
	return links, err
}

// blockersOf finds the blockers of many issues at the price of few requests: each open issue says how many it blocks.
func (t *Tracker) blockersOf(ctx context.Context, open map[int]issue, chosen []issue) (map[int][]tracker.Blocker, error) {
	states := map[int]bool{}
	for iid := range open {
		states[iid] = true
	}
	var elsewhere []int
	for _, i := range chosen {
		for _, n := range named(i.Body, i.IID) {
			if !states[n] && !slices.Contains(elsewhere, n) {
				elsewhere = append(elsewhere, n)
			}
		}
	}
	more, err := t.states(ctx, elsewhere)
	if err != nil {
		return nil, err
	}
	for n, isOpen := range more {
		states[n] = isOpen
	}
	out := map[int][]tracker.Blocker{}
	for _, i := range chosen {
		out[i.IID] = known(named(i.Body, i.IID), states)
	}
	return out, t.addLinked(ctx, open, out)
}

// addLinked asks the issues that block others whom they block.
func (t *Tracker) addLinked(ctx context.Context, open map[int]issue, out map[int][]tracker.Blocker) error {
	var mu sync.Mutex
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(parallelReads)
	for _, i := range open {
		if i.Blocking == 0 {
			continue
		}
		reads.Go(func() error {
			links, err := t.links(ctx, i.IID)
			mu.Lock()
			defer mu.Unlock()
			for _, l := range links {
				if l.LinkType == "blocks" && l.ProjectID == i.ProjectID && !slices.ContainsFunc(out[l.IID], func(b tracker.Blocker) bool { return b.Key == strconv.Itoa(i.IID) }) {
					out[l.IID] = append(out[l.IID], tracker.Blocker{Key: strconv.Itoa(i.IID), Open: true})
				}
			}
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return err
	}
	for iid := range out {
		slices.SortStableFunc(out[iid], func(a, b tracker.Blocker) int { return atoi(a.Key) - atoi(b.Key) })
	}
	return nil
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s) // a key made from a number
	return n
}

// known are the blockers of those numbers; one whose state cannot be known counts as open.
func known(numbers []int, states map[int]bool) (out []tracker.Blocker) {
	for _, n := range numbers {
		isOpen, seen := states[n]
		out = append(out, tracker.Blocker{Key: strconv.Itoa(n), Open: isOpen || !seen})
	}
	return out
}

// states tells of issues by their numbers whether they are open. What does not exist is not in it.
func (t *Tracker) states(ctx context.Context, numbers []int) (map[int]bool, error) {
	out := map[int]bool{}
	numbers = slices.Sorted(slices.Values(numbers))
	for some := range slices.Chunk(numbers, perPage) {
		query := url.Values{"state": {"all"}, "scope": {"all"}}
		for _, n := range some {
			query.Add("iids[]", strconv.Itoa(n))
		}
		raw, err := pages[listed](ctx, t, t.project("/issues"), query)
		if err != nil {
			return nil, err
		}
		for _, r := range raw {
			if i, err := r.decode(); err == nil {
				out[i.IID] = i.State == "opened"
			}
		}
	}
	return out, nil
}
