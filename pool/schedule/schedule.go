// Package schedule decides which issues may begin, so that runs do not get in each other's way: issues that are likely to
// change the same files are worked one after the other, no more with one label than may be, and while many requests are open
// nothing new begins. It decides over facts that its caller has collected, and changes nothing.
package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
)

// Facts are what Decide knows.
type Facts struct {
	Files *Files  // of the base
	Queue []Issue // could be worked now, in order
	On    []Work  // is being worked, or about to be
	Open  []Work  // is finished and not merged
	Limit int     // works that may be on or open together; 0: any number
	// ByLabel says how many issues with a label may be on together.
	ByLabel Limits
	// AllowOverlap lets issues begin whatever files they change.
	AllowOverlap bool
}

// Issue is one that could be worked.
type Issue struct {
	Key      string
	Area     Area
	Declared bool // a person has said which files it changes; otherwise the area is a guess
	Priority int
	Created  time.Time // zero when unknown
	Labels   []string
}

// Work is a run that is on, or commits that wait to be merged.
type Work struct {
	Key   string
	Area  Area
	Since time.Time // when it was finished; zero when unknown

	Labels []string
}

// Wait says why an issue does not begin now:
//   - journal.SkipOverlap: another issue that changes the same file comes first; its run has not ended.
//   - journal.SkipUnmerged: commits that change the same file wait to be merged.
//   - journal.SkipOpen: as many as may be are on or open.
//   - journal.SkipBusy: as many with one of its labels as may be are on.
//
// The caller adds the run that is waited for, and where the commits are.
type Wait struct {
	Key string
	journal.Skip
}

// Decision is what Decide comes to.
type Decision struct {
	Begin []string // keys, in the order in which they begin
	Wait  []Wait
	Later []Wait // of issues in Begin: unmerged commits for which others of their priority go first
}

// Decide says which issues of the queue begin now, and what the others wait for.
//
// An issue waits for runs that are on, and for those before it in the queue, so that none waits for itself or in a circle, and
// none is overtaken by those that it shares files with. Commits that nobody has merged yet are waited for only if the issue
// declares its files: they may stay open for long. Otherwise it goes behind issues of its priority that existed when those
// were finished. An issue whose own request is open needs no further one, so that the limit does not hold it.
func Decide(f Facts) (d Decision) {
	queue := f.yield(&d)
	count := map[string]bool{}
	open := map[string]bool{}
	on := busy{}
	for _, w := range f.On {
		count[w.Key] = true
		on.add(f.ByLabel.of(w.Labels))
	}
	for _, w := range f.Open {
		count[w.Key], open[w.Key] = true, true
	}
	var ahead []Work // begin before what follows, now or when what they wait for is over
	for _, i := range queue {
		if f.Limit > 0 && len(count) >= f.Limit && !open[i.Key] {
			d.Wait = append(d.Wait, Wait{i.Key, journal.Skip{Code: journal.SkipOpen, Detail: fmt.Sprintf("%d of %d", len(count), f.Limit)}})
			continue
		}
		if i.Declared {
			if w, path := f.first(i, f.Open); path != "" {
				d.Wait = append(d.Wait, waits(i, journal.SkipUnmerged, w, path))
				continue // nobody waits for what may take so long
			}
		}
		w, path := f.first(i, f.On)
		if path == "" {
			w, path = f.first(i, ahead)
		}
		if !i.Area.empty() {
			ahead = append(ahead, Work{Key: i.Key, Area: i.Area})
		}
		if path != "" {
			d.Wait = append(d.Wait, waits(i, journal.SkipOverlap, w, path))
			continue
		}
		labels := f.ByLabel.of(i.Labels)
		if label, full := on.full(f.ByLabel, labels); full {
			d.Wait = append(d.Wait, Wait{i.Key, journal.Skip{
				Code:   journal.SkipBusy,
				Detail: fmt.Sprintf("%s: %d of %d", label, on[label], f.ByLabel[label]),
			}})
			continue
		}
		on.add(labels)
		d.Begin = append(d.Begin, i.Key)
		count[i.Key] = true
	}
	return d
}

func waits(i Issue, code journal.SkipCode, w Work, path string) Wait {
	return Wait{i.Key, journal.Skip{Code: code, For: w.Key, Detail: path}}
}

// first is the first of the works that an issue shares files with; the path is empty when there is none.
func (f Facts) first(i Issue, works []Work) (Work, string) {
	if f.AllowOverlap || i.Area.empty() {
		return Work{}, ""
	}
	for _, w := range works {
		if w.Key == i.Key {
			continue
		}
		if path := f.Files.common(i.Area, w.Area); path != "" {
			return w, path
		}
	}
	return Work{}, ""
}

// yield is the queue with issues that probably conflict with unmerged commits moved back. Issues that came later do not
// overtake them, so that they are not put off for ever.
func (f Facts) yield(d *Decision) []Issue {
	var out []Issue // its end is the queue's front
	since := map[string]time.Time{}
	for at := len(f.Queue) - 1; at >= 0; at-- {
		i := f.Queue[at]
		to := 0
		if w, path := f.first(i, f.Open); path != "" && !i.Declared {
			since[i.Key] = w.Since
			for ; to < len(out); to++ {
				next := out[len(out)-1-to]
				if next.Priority != i.Priority || !since[next.Key].IsZero() || !next.Created.Before(w.Since) {
					break
				}
			}
			if to > 0 {
				d.Later = append(d.Later, waits(i, journal.SkipUnmerged, w, path))
			}
		}
		out = slices.Insert(out, len(out)-to, i)
	}
	slices.Reverse(out)
	return out
}
