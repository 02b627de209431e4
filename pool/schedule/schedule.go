// Package schedule decides which issues may begin, so that runs do not get in each other's way. Issues that are likely to change
// the same files are worked one after the other, the number of issues with a label is limited, and nothing new begins while many
// requests are open. It decides on facts that its caller has collected, and changes nothing.
package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
)

// Facts is the input of Decide.
type Facts struct {
	Files      *Files  // of the base
	Queue      []Issue // could be worked now, in order
	InProgress []Work  // is being worked, or about to be
	Open       []Work  // is finished and not merged
	Limit      int     // maximum number of works in progress or open; 0: no limit
	// ByLabel limits the number of issues with a label that are in progress.
	ByLabel Limits
	// AllowOverlap lets issues begin whatever files they change.
	AllowOverlap bool
}

// Issue is an issue that could be worked.
type Issue struct {
	Key      string
	Area     Area
	Declared bool // a person has listed the files; otherwise the area is a guess
	Priority int
	Created  time.Time // zero: unknown
	Labels   []string
}

// Work is a run in progress, or commits that wait to be merged.
type Work struct {
	Key   string
	Area  Area
	Since time.Time // when it was finished; zero: unknown

	Labels []string
}

// Wait is the reason why an issue does not begin now:
//   - journal.SkipOverlap: another issue that changes the same file comes first; its run has not ended.
//   - journal.SkipUnmerged: commits that change the same file wait to be merged.
//   - journal.SkipOpen: the limit of works in progress or open is reached.
//   - journal.SkipBusy: the limit of one of its labels is reached.
//
// The caller adds the run to wait for, and the place of the commits.
type Wait struct {
	Key string
	journal.Skip
}

// Decision is the result of Decide.
type Decision struct {
	Begin []string // keys, in the order in which they begin
	Wait  []Wait
	Later []Wait // issues of Begin that come after others of their priority because of unmerged commits
}

// Decide returns which issues of the queue begin now, and what the others wait for.
//
// An issue waits for runs in progress, and for issues before it in the queue that it shares files with. So no issue waits for
// itself, none waits in a circle, and none is overtaken by those it shares files with. It waits for unmerged commits only if it
// declares its files: the commits may stay open for long. Otherwise it only comes after issues of its priority that existed when
// the commits were finished. The limit does not stop an issue whose own request is open: it needs no further request.
func Decide(f Facts) (d Decision) {
	queue := f.reorderForUnmerged(&d)
	count := map[string]bool{}
	open := map[string]bool{}
	on := labelCounts{}
	for _, w := range f.InProgress {
		count[w.Key] = true
		on.add(f.ByLabel.limitedAmong(w.Labels))
	}
	for _, w := range f.Open {
		count[w.Key], open[w.Key] = true, true
	}
	var ahead []Work // issues that begin before the following ones, now or later
	for _, i := range queue {
		if f.Limit > 0 && len(count) >= f.Limit && !open[i.Key] {
			d.Wait = append(d.Wait, Wait{i.Key, journal.Skip{Code: journal.SkipOpen, Detail: fmt.Sprintf("%d of %d", len(count), f.Limit)}})
			continue
		}
		if i.Declared {
			if w, path := f.firstOverlap(i, f.Open); path != "" {
				d.Wait = append(d.Wait, newWait(i, journal.SkipUnmerged, w, path))
				continue // others do not wait for it, since this may take long
			}
		}
		w, path := f.firstOverlap(i, f.InProgress)
		if path == "" {
			w, path = f.firstOverlap(i, ahead)
		}
		if !i.Area.empty() {
			ahead = append(ahead, Work{Key: i.Key, Area: i.Area})
		}
		if path != "" {
			d.Wait = append(d.Wait, newWait(i, journal.SkipOverlap, w, path))
			continue
		}
		labels := f.ByLabel.limitedAmong(i.Labels)
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

func newWait(i Issue, code journal.SkipCode, w Work, path string) Wait {
	return Wait{i.Key, journal.Skip{Code: code, WaitsFor: w.Key, Detail: path}}
}

// firstOverlap returns the first work that shares files with an issue; the path is empty if there is none.
func (f Facts) firstOverlap(i Issue, works []Work) (Work, string) {
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

// reorderForUnmerged returns the queue with issues that probably conflict with unmerged commits moved back. Issues created
// later do not overtake them, so that they are not delayed forever.
func (f Facts) reorderForUnmerged(d *Decision) []Issue {
	var out []Issue // in reverse order: its end is the queue's front
	since := map[string]time.Time{}
	for at := len(f.Queue) - 1; at >= 0; at-- {
		i := f.Queue[at]
		to := 0
		if w, path := f.firstOverlap(i, f.Open); path != "" && !i.Declared {
			since[i.Key] = w.Since
			for ; to < len(out); to++ {
				next := out[len(out)-1-to]
				if next.Priority != i.Priority || !since[next.Key].IsZero() || !next.Created.Before(w.Since) {
					break
				}
			}
			if to > 0 {
				d.Later = append(d.Later, newWait(i, journal.SkipUnmerged, w, path))
			}
		}
		out = slices.Insert(out, len(out)-to, i)
	}
	slices.Reverse(out)
	return out
}
