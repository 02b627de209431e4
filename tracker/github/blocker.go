package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/github/api"
)

const (
	maxLookups = 200             // issues named by texts that one listing reads
	maxOfText  = 20              // of them for one text
	knownFor   = 5 * time.Minute // how long the state of another project's issue counts
)

// states remembers whether issues are open, and limits the requests that texts can cause.
type states struct {
	elsewhere *elsewhere

	mu   sync.Mutex
	open map[string]bool // by key; guarded by mu
	left int             // requests; guarded by mu
}

// newStates starts with the numbers of issues that are known to be open.
func (t *Tracker) newStates(open map[int]bool) *states {
	s := &states{open: map[string]bool{}, left: maxLookups, elsewhere: &t.elsewhere}
	for n := range open {
		s.open[strconv.Itoa(n)] = true
	}
	return s
}

// isOpen asks once for each issue, and takes from left, which is the text's. An issue that cannot be seen, and one beyond a
// limit, counts as open: a person meant it to block.
func (s *states) isOpen(key string, foreign bool, left *int, ask func() (bool, error)) (bool, error) {
	s.mu.Lock()
	open, known := s.open[key]
	switch {
	case known:
	case *left == 0:
		open, known = true, true
	default:
		*left--
		if foreign {
			open, known = s.elsewhere.state(key)
		}
		if !known && s.left == 0 {
			open, known = true, true
		} else if !known {
			s.left--
		}
	}
	s.mu.Unlock()
	if known {
		return open, nil
	}
	open, err := ask()
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open[key] = open
		if foreign {
			s.elsewhere.note(key, open)
		}
	}
	return open, err
}

// elsewhere remembers the states of issues of other projects for a while: a sweep lists the backlog again and again. The
// zero value remembers nothing yet; now has to be set.
type elsewhere struct {
	now func() time.Time

	mu   sync.Mutex
	seen map[string]seen // by key; guarded by mu
}

type seen struct {
	open bool
	at   time.Time
}

func (e *elsewhere) state(key string) (open, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, known := e.seen[key]
	return s.open, known && e.now().Sub(s.at) < knownFor
}

func (e *elsewhere) note(key string, open bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen == nil || len(e.seen) >= 10*maxLookups {
		e.seen = map[string]seen{}
	}
	e.seen[key] = seen{open, e.now()}
}

// blockers are the issues that have to be closed first: dependencies, sub-issues, and those that the text names. The
// first two are requested only where the issue says that it has some.
func (t *Tracker) blockers(ctx context.Context, i *issue, s *states) ([]tracker.Blocker, error) {
	var list []tracker.Blocker
	put := func(b tracker.Blocker) {
		n := slices.IndexFunc(list, func(have tracker.Blocker) bool { return have.Key == b.Key })
		if n < 0 {
			list = append(list, b)
		} else {
			list[n].Open = list[n].Open || b.Open
		}
	}
	for _, list := range []struct {
		kind  string
		total int
	}{{"dependencies/blocked_by", i.Dependencies.Total}, {"sub_issues", i.SubIssues.Total}} {
		if list.total == 0 {
			continue
		}
		linked, err := t.linked(ctx, i.GetNumber(), list.kind)
		if err != nil {
			return nil, err
		}
		for _, b := range linked {
			put(tracker.Blocker{Key: t.keyOf(reference{b.project(), b.GetNumber()}), Open: b.GetState() != "closed"})
		}
	}
	left := maxOfText
	for _, r := range blockersIn(i.GetBody(), t.project.Host, t.project.String()) {
		if r.project == "" && r.number == i.GetNumber() {
			continue
		}
		key := t.keyOf(r)
		open, err := s.isOpen(key, r.project != "", &left, func() (bool, error) { return t.isOpen(ctx, r) })
		if err != nil {
			return nil, err
		}
		put(tracker.Blocker{Key: key, Open: open})
	}
	return list, nil
}

// linked reads one list of related issues. go-github v62 has neither. Where the feature is off there are none.
func (t *Tracker) linked(ctx context.Context, number int, kind string) (list []*issue, err error) {
	err = t.Stack.Twice(ctx, func(ctx context.Context) (err error) {
		list, err = api.All(ctx, completeIssue, func(ctx context.Context, p gh.ListOptions) (some []*issue, resp *gh.Response, err error) {
			path := t.path("/issues/%d/%s?per_page=%d&page=%d", number, kind, p.PerPage, p.Page)
			resp, err = t.do(ctx, http.MethodGet, path, nil, &some)
			return some, resp, err
		})
		return err
	})
	if transport.Missing(err) {
		return nil, nil
	}
	return list, err
}

// keyOf is the key of an issue of this project or another.
func (t *Tracker) keyOf(r reference) string {
	if r.project == "" || strings.EqualFold(r.project, t.project.String()) {
		return strconv.Itoa(r.number)
	}
	return tracker.Key(fmt.Sprintf("%s#%d", r.project, r.number))
}

// isOpen reads the state of an issue that a text names.
func (t *Tracker) isOpen(ctx context.Context, r reference) (bool, error) {
	owner, name := t.project.Owner, t.project.Name
	if r.project != "" {
		owner, name, _ = strings.Cut(r.project, "/")
	}
	i, err := api.One(transport.Follow(ctx), func(i *gh.Issue) bool { return i.GetNumber() > 0 && i.GetState() != "" },
		func(ctx context.Context) (*gh.Issue, *gh.Response, error) {
			return t.api.Issues.Get(ctx, owner, name, r.number)
		})
	switch transport.Status(err) {
	case http.StatusNotFound, http.StatusGone, http.StatusForbidden, http.StatusMovedPermanently, http.StatusUnavailableForLegalReasons:
		return true, nil
	}
	return err != nil || i.GetState() != "closed", err
}
