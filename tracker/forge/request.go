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

// Limits of feedback, which becomes part of a prompt. The forge keeps the rest.
const (
	MaxFeedback = 32 << 10 // total bytes
	MaxPart     = 8 << 10  // bytes of one log, review or comment
)

// Request is a pull or merge request.
type Request struct {
	tracker.RequestRef
	Head    string // source branch
	Base    string // target branch
	Commit  string // head commit
	Author  Account
	Updated time.Time
	Fork    bool // the source branch is in another project
	Open    bool
	Refused bool // closed without a merge
	rank    int  // see withRanks
}

func (r Request) isFrom(a Account) bool { return r.Author.ID == a.ID && !r.Fork }

// withRanks returns the requests of a branch that are ralph's own, or into the base, with their rank: 3 ralph's into the base,
// 2 trusted people's, 1 ralph's into another base, 0 other people's. On some forges everybody who can read can open a request.
func (p *Project) withRanks(ctx context.Context, list []Request, head, base string) (out []Request, err error) {
	self, err := p.Identity(ctx)
	if err != nil {
		return nil, err
	}
	var authors []Account
	for _, r := range slices.Backward(list) { // latest first, see LatestFirst
		isOwn, intoBase := r.isFrom(self), r.Base == base
		switch {
		case r.Head != head || r.Fork || !isOwn && !intoBase:
			continue
		case !isOwn:
			authors = append(authors, r.Author)
		case intoBase:
			r.rank = 3
		default:
			r.rank = 1
		}
		out = append(out, r)
	}
	slices.Reverse(out)
	trusted, err := p.People.Trusted(ctx, authors)
	for n, r := range out {
		if trusted[r.Author.ID] && r.rank == 0 {
			out[n].rank = 2
		}
	}
	return out, err
}

// FindRequest returns the number of the first open request of the highest rank for a branch; 0: there is none, and ralph opens one.
// A forge allows one request per source and target branch. If that is a stranger's, ralph cannot open its own: ErrOccupied.
func (p *Project) FindRequest(ctx context.Context, list []Request, q tracker.Request) (int, error) {
	list, err := p.withRanks(ctx, list, q.Head, q.Base)
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

// RequestQuery selects requests.
type RequestQuery struct {
	Head   string // branch; empty: any
	Author int64  // 0: any
	All    bool   // include closed and merged requests
}

// OwnRequests returns the open requests of ralph's account whose branch has the prefix, oldest first.
func (p *Project) OwnRequests(ctx context.Context, prefix string) ([]Request, error) {
	self, err := p.Identity(ctx)
	if err != nil {
		return nil, err
	}
	list, err := p.calls.Requests(ctx, RequestQuery{Author: self.ID})
	seen := map[int]bool{} // a request that moves to another page between two reads is listed twice
	return slices.DeleteFunc(list, func(r Request) bool {
		key, own := strings.CutPrefix(r.Head, prefix)
		again := seen[r.Number]
		seen[r.Number] = true
		return !own || key == "" || again || !r.Open || !r.isFrom(self)
	}), err
}

// OwnRequest returns ralph's open request of a branch, or the zero Request.
func (p *Project) OwnRequest(ctx context.Context, head string) (Request, error) {
	self, err := p.Identity(ctx)
	if err != nil {
		return Request{}, err
	}
	list, err := p.calls.Requests(ctx, RequestQuery{Head: head})
	for _, r := range list {
		if r.Head == head && r.Open && r.isFrom(self) {
			return r, err
		}
	}
	return Request{}, err
}

// MergeLater implements tracker.AutoMerger.
func (p *Project) MergeLater(ctx context.Context, head, commit string) (refused string, err error) {
	own, err := p.OwnRequest(ctx, head)
	if err != nil || own.Number == 0 {
		return "ralph has no open request for it", err
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

// ownHead returns the branch of a request of ralph's account, or "" for another account's.
func (p *Project) ownHead(ctx context.Context, number int) (string, error) {
	self, err := p.Identity(ctx)
	if err != nil {
		return "", err
	}
	r, err := p.calls.Request(ctx, number)
	if err != nil || !r.isFrom(self) {
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

// RejectedHead implements tracker.RejectionReader.
func (p *Project) RejectedHead(ctx context.Context, head, base string) (commit, url string, err error) {
	list, err := p.calls.Requests(ctx, RequestQuery{Head: head, All: true})
	if err == nil {
		list, err = p.withRanks(ctx, list, head, base)
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

// Cause is a reason why a request needs another run. A Cause without Text does not count.
type Cause struct {
	Why     tracker.FollowUpReason
	Text    string
	At      time.Time
	Threads []string // IDs of the review threads in Text
}

// FollowUp joins the causes, the most important first. With a request for changes, At is the time of that alone: a later time
// would also mark comments as answered that did not fit into the text.
func (r Request) FollowUp(causes ...Cause) tracker.FollowUp {
	f := tracker.FollowUp{Request: r.RequestRef, Head: r.Head, Commit: r.Commit}
	var parts []string
	var changesAskedAt time.Time
	for _, cause := range causes {
		if cause.Text == "" {
			continue
		}
		if f.Reason == "" {
			f.Reason = cause.Why
		}
		if cause.Why == tracker.ChangesRequested {
			changesAskedAt = cause.At
		}
		f.At, f.Threads = Later(f.At, cause.At), append(f.Threads, cause.Threads...)
		parts = append(parts, strings.TrimSpace(cause.Text))
	}
	if !changesAskedAt.IsZero() {
		f.At = changesAskedAt
	}
	f.Feedback = tracker.Cut(strings.Join(parts, "\n\n"), MaxFeedback)
	return f
}

// FollowUpsOf calls check for each of ralph's own open requests, with the time up to which ralph has answered people (zero:
// unknown), and returns the results that have a reason.
func (p *Project) FollowUpsOf(
	ctx context.Context, q tracker.FollowUpQuery, check func(ctx context.Context, number int, answered time.Time) (tracker.FollowUp, error),
) ([]tracker.FollowUp, error) {
	ownRequests, err := p.OwnRequests(ctx, q.Prefix)
	if err != nil {
		return nil, err
	}
	found, err := fanout.Map(ctx, ownRequests, func(ctx context.Context, r Request) (tracker.FollowUp, error) {
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

// CountsAsTaken reports whether a request can count as somebody else's work on an issue. Requests of bots and ralph's own cannot. The
// account does not suffice to recognise ralph's own, since it may belong to a person.
func (p *Project) CountsAsTaken(r Request, self Account) bool {
	ralphs := r.isFrom(self) && strings.HasPrefix(r.Head, p.Settings.BranchPrefix)
	return r.Open && r.Author.ID > 0 && !r.Author.Bot && !slices.Contains(p.Settings.TrustedBots, r.Author.ID) && !ralphs
}

// Taken describes, by issue number, the request that counts as somebody else's work on the issue. It considers only authors
// who may direct ralph or are assigned to the issue: otherwise anybody could keep ralph from any issue.
func (p *Project) Taken(ctx context.Context, list []Closing) (map[int]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	self, err := p.Identity(ctx)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(c Closing) bool { return !p.CountsAsTaken(c.Request, self) })
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
