package github

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

// blockers are what has to be closed before an issue: its dependencies, its sub-issues, and what its text names. The
// first two are asked for only where the issue says that it has some. Open holds the numbers of issues known to be open.
func (t *Tracker) blockers(ctx context.Context, i issue, open map[int]bool) ([]tracker.Blocker, error) {
	var all []tracker.Blocker
	put := func(b tracker.Blocker) {
		for n := range all {
			if all[n].Key == b.Key {
				all[n].Open = all[n].Open || b.Open
				return
			}
		}
		all = append(all, b)
	}
	var lists []string
	if i.Dependencies.Total > 0 {
		lists = append(lists, "dependencies/blocked_by")
	}
	if i.SubIssues.Total > 0 {
		lists = append(lists, "sub_issues")
	}
	for _, list := range lists {
		var some []issue
		err := t.stack.Twice(ctx, func(ctx context.Context) (err error) {
			some, err = pages[issue](ctx, t, t.repo("/issues/%d/%s", i.Number, list), nil)
			return err
		})
		if forge.Missing(err) {
			continue // switched off
		}
		if err != nil {
			return nil, err
		}
		for _, b := range some {
			put(tracker.Blocker{Key: t.keyOf(reference{b.project(), b.Number}), Open: b.State != "closed"})
		}
	}
	for _, r := range blockersIn(i.Body, t.cfg.Project.Host, t.cfg.Project.String()) {
		if r.project == "" && r.number == i.Number {
			continue
		}
		isOpen := r.project == "" && open[r.number]
		if !isOpen {
			var err error
			if isOpen, err = t.isOpen(ctx, r); err != nil {
				return nil, err
			}
		}
		put(tracker.Blocker{Key: t.keyOf(r), Open: isOpen})
	}
	return all, nil
}

// keyOf is the key of an issue of this project or another.
func (t *Tracker) keyOf(r reference) string {
	if r.project == "" || strings.EqualFold(r.project, t.cfg.Project.String()) {
		return strconv.Itoa(r.number)
	}
	return tracker.Key(fmt.Sprintf("%s#%d", r.project, r.number))
}

// isOpen asks for the state of an issue that a text names. One that cannot be seen counts as open: a person meant it to
// block.
func (t *Tracker) isOpen(ctx context.Context, r reference) (bool, error) {
	path := t.repo("/issues/%d", r.number)
	if r.project != "" {
		path = fmt.Sprintf("repos/%s/issues/%d", r.project, r.number)
	}
	var i issue
	_, err := t.call(ctx, http.MethodGet, path, nil, &i)
	switch forge.Status(err) {
	case http.StatusNotFound, http.StatusGone, http.StatusForbidden, http.StatusMovedPermanently, http.StatusUnavailableForLegalReasons:
		return true, nil
	}
	return i.State != "closed", err
}
