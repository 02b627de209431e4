package forge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/fanout"
	"github.com/ralph-pool/ralph/tracker"
)

// Feedback goes into a prompt; the forge keeps the rest.
const (
	MaxFeedback = 32 << 10 // bytes in all
	MaxPart     = 8 << 10  // bytes of one log, review or comment
)

// Request is a pull or merge request.
type Request struct {
	tracker.RequestRef
	Head    string // branch
	Base    string // branch that it is for
	Commit  string // of the head
	Author  Account
	Updated time.Time
	Fork    bool // the branch is in another project
	Open    bool
	Refused bool // closed, and not merged
	rank    int  // in ranked
}

func (r Request) by(a Account) bool { return r.Author.ID == a.ID && !r.Fork }

// ranked are the requests of a branch that are ralph's own, or into the base. Those of people who may not
// direct ralph have rank 0: on some forges whoever may read can open one.
func (p *Project) ranked(ctx context.Context, list []Request, head, base string) (out []Request, err error) {
	self, err := p.Identity(ctx)
	if err != nil {
		return nil, err
	}
	var others []Account
	for _, r := range slices.Backward(list) { // as for LatestFirst
		own, into := r.by(self), r.Base == base
		switch {
		case r.Head != head || r.Fork || !own && !into:
			continue
		case !own:
			others = append(others, r.Author)
		case into:
			r.rank = 3
		default:
			r.rank = 1
		}
		out = append(out, r)
	}
	slices.Reverse(out)
	trusted, err := p.People.Trusted(ctx, others)
	for n, r := range out {
		if trusted[r.Author.ID] && r.rank == 0 {
			out[n].rank = 2
		}
	}
	return out, err
}

// Standing is the number of the open request that stands for a branch, the first of the highest rank; 0: ralph opens its own. A
// forge has one request from a branch into a base: where that is a stranger's, ralph can neither open nor move one there.
func (p *Project) Standing(ctx context.Context, list []Request, q tracker.Request) (int, error) {
	list, err := p.ranked(ctx, list, q.Head, q.Base)
	var best, stranger Request
	for _, r := range list {
		if r.Open && r.rank > best.rank {
			best = r
		} else if r.Open && r.rank == 0 {
			stranger = r
		}
	}
	if err == nil && best.rank < 2 && stranger.Number > 0 {
		err = fmt.Errorf("%w: %s%d by %s, who may not direct ralph; close it",
			tracker.ErrOccupied, p.Profile.Request, stranger.Number, stranger.Author.Name)
	}
	return best.Number, err
}

// RequestQuery says which requests are listed.
type RequestQuery struct {
	Head   string // branch; empty: any
	Author int64  // 0: any
	All    bool   // those that are closed or merged, too
}

// OwnRequests are the open requests of ralph's account whose branch has the prefix, oldest first.
func (p *Project) OwnRequests(ctx context.Context, prefix string) ([]Request, error) {
	self, err := p.Identity(ctx)
	if err != nil {
		return nil, err
	}
	list, err := p.calls.Requests(ctx, RequestQuery{Author: self.ID})
	seen := map[int]bool{} // a request may move to another page meanwhile and be read twice
	return slices.DeleteFunc(list, func(r Request) bool {
		key, own := strings.CutPrefix(r.Head, prefix)
		again := seen[r.Number]
		seen[r.Number] = true
		return !own || key == "" || again || !r.Open || !r.by(self)
	}), err
}

// OwnRequest is ralph's open request of a branch; zero without one.
func (p *Project) OwnRequest(ctx context.Context, head string) (Request, error) {
	self, err := p.Identity(ctx)
	if err != nil {
		return Request{}, err
	}
	list, err := p.calls.Requests(ctx, RequestQuery{Head: head})
	for _, r := range list {
		if r.Head == head && r.Open && r.by(self) {
			return r, err
		}
	}
	return Request{}, err
}

// MergeLater implements tracker.AutoMerger.
func (p *Project) MergeLater(ctx context.Context, head, commit string) (refused string, err error) {
	own, err := p.OwnRequest(ctx, head)
	if err != nil || own.Number == 0 {
		return "no request of ralph's is open for it", err
	}
	return p.calls.MergeLater(ctx, own.Number, commit)
}

// KeepOpen implements tracker.AutoMerger.
func (p *Project) KeepOpen(ctx context.Context, head string) error {
	own, err := p.OwnRequest(ctx, head)
	if err != nil || own.Number == 0 {
		return err
	}
	return p.calls.KeepOpen(ctx, own.Number)
}

// ownHead is the branch of a request of ralph's account; empty for another's.
func (p *Project) ownHead(ctx context.Context, number int) (string, error) {
	self, err := p.Identity(ctx)
	if err != nil {
		return "", err
	}
	r, err := p.calls.Request(ctx, number)
	if err != nil || !r.by(self) {
		return "", err
	}
	return r.Head, nil
}

// Requests implements tracker.RequestLister.
func (p *Project) Requests(ctx context.Context, prefix string) (map[string]tracker.RequestRef, error) {
	mine, err := p.OwnRequests(ctx, prefix)
	open := map[string]tracker.RequestRef{}
	for _, r := range mine {
		open[strings.TrimPrefix(r.Head, prefix)] = r.RequestRef
	}
	return open, err
}

// Refused implements tracker.Refuser.
func (p *Project) Refused(ctx context.Context, head, base string) (commit, url string, err error) {
	list, err := p.calls.Requests(ctx, RequestQuery{Head: head, All: true})
	if err == nil {
		list, err = p.ranked(ctx, list, head, base)
	}
	if err != nil {
		return "", "", fmt.Errorf("list the requests of %s: %w", head, err)
	}
	for _, r := range list {
		switch {
		case r.rank == 0:
		case r.Refused:
			commit, url = r.Commit, r.URL
		default:
			commit, url = "", ""
		}
	}
	return commit, url, nil
}

// Cause is why a request needs another run; without a text there is none.
type Cause struct {
	Why     tracker.FollowUpReason
	Text    string
	At      time.Time
	Threads []string // of reviews, that the text has
}

// FollowUp joins the reasons of which each counts before those after it. What a person asks for is answered up to its own time:
// a later one would answer what did not fit into the text.
func (r Request) FollowUp(causes ...Cause) tracker.FollowUp {
	f := tracker.FollowUp{Request: r.RequestRef, Head: r.Head, Commit: r.Commit}
	var parts []string
	var asked time.Time
	for _, cause := range causes {
		if cause.Text == "" {
			continue
		}
		if f.Reason == "" {
			f.Reason = cause.Why
		}
		if cause.Why == tracker.ChangesRequested {
			asked = cause.At
		}
		f.At, f.Threads = Later(f.At, cause.At), append(f.Threads, cause.Threads...)
		parts = append(parts, strings.TrimSpace(cause.Text))
	}
	if !asked.IsZero() {
		f.At = asked
	}
	f.Feedback = tracker.Cut(strings.Join(parts, "\n\n"), MaxFeedback)
	return f
}

// FollowUpsOf checks ralph's own open requests, each with the time up to which ralph has answered people; zero: not known.
// Those without a reason are left out.
func (p *Project) FollowUpsOf(
	ctx context.Context, q tracker.FollowUpQuery, check func(ctx context.Context, number int, answered time.Time) (tracker.FollowUp, error),
) ([]tracker.FollowUp, error) {
	mine, err := p.OwnRequests(ctx, q.Prefix)
	if err != nil {
		return nil, err
	}
	found, err := fanout.Map(ctx, mine, func(ctx context.Context, r Request) (tracker.FollowUp, error) {
		key := strings.TrimPrefix(r.Head, q.Prefix)
		answered, err := q.AnsweredFor(ctx, key)
		if err != nil {
			return tracker.FollowUp{}, err
		}
		f, err := check(ctx, r.Number, answered)
		if err != nil {
			return f, fmt.Errorf("check %s%d: %w", p.Profile.Request, r.Number, err)
		}
		f.Key = key
		return f, nil
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(f tracker.FollowUp) bool { return f.Reason == "" }), nil
}

// Closing is an open request that closes an issue.
type Closing struct {
	Request
	Issue    int
	Assigned bool // its author is assigned to the issue
}

// Takes reports whether a request may take an issue at all. Those of bots and ralph's own do not. The account alone does
// not tell ralph's own: a person may have lent it.
func (p *Project) Takes(r Request, self Account) bool {
	ralphs := r.by(self) && strings.HasPrefix(r.Head, p.Settings.BranchPrefix)
	return r.Open && r.Author.ID > 0 && !r.Author.Bot && !slices.Contains(p.Settings.TrustedBots, r.Author.ID) && !ralphs
}

// Taken says which request takes each issue, by number. Only requests of accounts that may direct ralph, or that are assigned
// to the issue, count: otherwise anybody could keep ralph from everything.
func (p *Project) Taken(ctx context.Context, list []Closing) (map[int]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	self, err := p.Identity(ctx)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(c Closing) bool { return !p.Takes(c.Request, self) })
	slices.SortStableFunc(list, func(a, b Closing) int { return a.Number - b.Number })
	asked := slices.DeleteFunc(slices.Clone(list), func(c Closing) bool { return c.Assigned })
	trusted, err := p.People.Trusted(ctx, LatestFirst(asked, func(c Closing) Account { return c.Author }))
	if err != nil {
		return nil, err
	}
	taken := map[int]string{}
	for _, c := range list {
		if taken[c.Issue] == "" && (c.Assigned || trusted[c.Author.ID]) {
			taken[c.Issue] = fmt.Sprintf("%s%d by %s closes it", p.Profile.Request, c.Number, c.Author.Name)
		}
	}
	return taken, nil
}
