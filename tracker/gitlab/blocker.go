package gitlab

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/internal/fanout"
	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

var (
	blockedLine = pattern.Lazy(`(?im)\bblocked by:?[ \t]+(#\d{1,9}\b(?:(?:[ \t]*(?:,|and)[ \t]*)+#\d{1,9}\b)*)`)
	reference   = pattern.Lazy(`#(\d{1,9})\b`)
)

// Limits for blockers that texts name, since each 100 of them cost a request.
const (
	maxNamed   = 50  // per text; the rest are ignored
	maxOfText  = 20  // lookups per text of issues that are not listed; the rest count as open
	maxLookups = 200 // lookups per listing
)

// namedBlockers returns the numbers of the issues that a text names as blockers, as in "blocked by #12 and #13". It accepts only issues
// of the same project: a stranger's text must not make ralph read elsewhere.
func namedBlockers(body string, self int) []int {
	var out []int
	for _, line := range blockedLine().FindAllStringSubmatch(body, -1) {
		for _, ref := range reference().FindAllStringSubmatch(line[1], -1) {
			n, err := strconv.Atoi(ref[1])
			if err == nil && n > 0 && n != self && !slices.Contains(out, n) && len(out) < maxNamed {
				out = append(out, n)
			}
		}
	}
	return out
}

// addBlocker appends a blocker unless the list has it.
func addBlocker(list []tracker.Blocker, b tracker.Blocker) []tracker.Blocker {
	if slices.ContainsFunc(list, func(have tracker.Blocker) bool { return have.Key == b.Key }) {
		return list
	}
	return append(list, b)
}

// blockers returns the issue's blockers: those that its text names, and those linked in any project.
func (t *Tracker) blockers(ctx context.Context, i *issue) ([]tracker.Blocker, error) {
	numbers := namedBlockers(i.Body, i.IID)
	states, err := t.states(ctx, numbers[:min(len(numbers), maxOfText)])
	if err != nil {
		return nil, err
	}
	out := knownBlockers(numbers, states)
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
		out = addBlocker(out, b)
	}
	return out, nil
}

// links returns the links of an issue; none if the instance or the account's role does not have links.
func (t *Tracker) links(ctx context.Context, iid int) (links []*gl.IssueRelation, err error) {
	complete := func(l *gl.IssueRelation) bool {
		return l.IID > 0 && l.ProjectID > 0 && l.State != "" && (l.LinkType != "is_blocked_by" || l.References != nil)
	}
	err = t.Stack.RetryNotFound(ctx, func(ctx context.Context) (err error) {
		links, err = listAll(ctx, complete, func(o ...gl.RequestOptionFunc) ([]*gl.IssueRelation, *gl.Response, error) {
			return t.api.IssueLinks.ListIssueRelations(t.project.Path, iid, o...)
		})
		return err
	})
	switch transport.Status(err) {
	case http.StatusForbidden, http.StatusNotFound:
		return nil, nil
	}
	return links, err
}

// blockersOf returns the blockers of many issues with few requests: each open issue states the number of issues it blocks.
func (t *Tracker) blockersOf(ctx context.Context, open map[int]*issue, chosen []*issue) (map[int][]tracker.Blocker, error) {
	states := map[int]bool{}
	for iid := range open {
		states[iid] = true
	}
	var unlisted []int
	for _, i := range chosen {
		left := maxOfText
		for _, n := range namedBlockers(i.Body, i.IID) {
			if !states[n] && !slices.Contains(unlisted, n) && left > 0 && len(unlisted) < maxLookups {
				unlisted = append(unlisted, n)
				left--
			}
		}
	}
	more, err := t.states(ctx, unlisted)
	if err != nil {
		return nil, err
	}
	maps.Copy(states, more)
	out := map[int][]tracker.Blocker{}
	for _, i := range chosen {
		out[i.IID] = knownBlockers(namedBlockers(i.Body, i.IID), states)
	}
	return out, t.addLinked(ctx, open, out)
}

// addLinked reads the links of the issues that block others, and adds them to out.
func (t *Tracker) addLinked(ctx context.Context, open map[int]*issue, out map[int][]tracker.Blocker) error {
	blocking := slices.DeleteFunc(slices.Collect(maps.Values(open)), func(i *issue) bool { return i.Blocking == 0 })
	lists, err := fanout.Map(ctx, blocking, func(ctx context.Context, i *issue) ([]*gl.IssueRelation, error) { return t.links(ctx, i.IID) })
	if err != nil {
		return err
	}
	for n, i := range blocking {
		for _, l := range lists[n] {
			if l.LinkType == "blocks" && l.ProjectID == i.ProjectID {
				out[l.IID] = addBlocker(out[l.IID], tracker.Blocker{Key: strconv.Itoa(i.IID), Open: true})
			}
		}
	}
	for iid := range out {
		slices.SortStableFunc(out[iid], func(a, b tracker.Blocker) int {
			x, _ := forge.Number(a.Key)
			y, _ := forge.Number(b.Key)
			return x - y
		})
	}
	return nil
}

// knownBlockers returns the blockers with these numbers; one with an unknown state counts as open.
func knownBlockers(numbers []int, states map[int]bool) (out []tracker.Blocker) {
	for _, n := range numbers {
		isOpen, seen := states[n]
		out = append(out, tracker.Blocker{Key: strconv.Itoa(n), Open: isOpen || !seen})
	}
	return out
}

// states reports, by number, which issues are open. It omits issues that do not exist.
func (t *Tracker) states(ctx context.Context, numbers []int) (map[int]bool, error) {
	out := map[int]bool{}
	for some := range slices.Chunk(slices.Sorted(slices.Values(numbers)), transport.PageSize) {
		raw, err := t.rawIssues(ctx, gl.ListProjectIssuesOptions{State: gl.Ptr("all"), Scope: gl.Ptr("all"), IIDs: &some})
		if err != nil {
			return nil, err
		}
		for _, text := range raw {
			if i, err := transport.Decode(*text, completeIssue); err == nil {
				out[i.IID] = i.State == "opened"
			}
		}
	}
	return out, nil
}
