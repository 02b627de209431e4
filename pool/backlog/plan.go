// Package backlog makes plans: which issues of a backlog may be worked now, in which order, and why every other open issue may
// not. It reads the tracker, the claims and the journal, and changes nothing.
package backlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/pool/internal/admission"
	"github.com/ralph-pool/ralph/pool/internal/decide"
	"github.com/ralph-pool/ralph/pool/internal/tally"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/review"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/pool/schedule"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/checkout"
)

// Planner makes plans for the sweeps of one pool. Its methods are safe for concurrent use. Require has at least one label.
type Planner struct {
	Run    config.Config // with its defaults
	Claims func(ctx context.Context) (map[string]worktree.ClaimState, error)
	Index  *schedule.Index
	Full   func(ctx context.Context) error // returns an error if a cap of the project is reached
	Warn   func(key, text string)          // called for an issue whose request cannot be read

	Require, Exclude []string // labels that an issue must all have, and labels that it must not have
	BranchPrefix     string
	MaxOpen          int // see pool.Config
	ByLabel          schedule.Limits
	AllowOverlap     bool
}

// Query describes a plan to make.
type Query struct {
	Base       worktree.Base
	Keys       []string        // the only issues to plan for, named by a person; empty: all
	Merged     []tracker.Issue // issues that count as closed
	InProgress map[string]bool // issues that the sweep has started and whose runs have not ended
	// Ended has the issues whose runs have ended, and the id of the request that each run had. The sweep does not work them again
	// without a newer request.
	Ended map[string]string
}

// Plan is what a sweep would do now.
type Plan struct {
	Work           []tracker.Issue   // in the order of their start, after the follow-ups
	FollowUp       []FollowUp        // ralph's own open requests that need another run
	HandOver       []FollowUp        // requests that have used up their rounds; a sweep hands them to a person
	WaitingForRuns []Skipped         // issues that wait for runs with the same files or label
	Postponed      []Skipped         // issues of Work that lost their place in the order to unmerged changes of the same files
	Skipped        []Skipped         // every other open issue
	Problems       []tracker.Problem // parts of the backlog that could not be read
	Cycles         []tracker.Cycle   // open issues that wait for each other
	Asked          map[string]string // issues of Query.Ended for which a person has asked since, and the id of the request
	Merged         []tracker.Issue   // issues in review that a person has merged; a sweep closes them first; set by Preview only
}

// Skipped is an issue that is not worked, and the reason.
type Skipped struct {
	Issue tracker.Issue
	Skip  journal.Skip
}

// FollowUp is an open request of ralph's that needs another run, and its issue.
type FollowUp struct {
	tracker.FollowUp
	Issue  tracker.Issue
	Rounds int // runs that the request has had, on all machines

	Mark string // of the issue's report
}

// Task is an issue to work. If Follow is set, the task is to follow up this request.
type Task struct {
	Issue  tracker.Issue
	Follow *tracker.FollowUp
}

// Tasks returns the work of the plan in order, each issue once.
func (p Plan) Tasks() (list []Task) {
	followed := map[string]bool{}
	for _, f := range slices.SortedFunc(slices.Values(p.FollowUp), func(a, b FollowUp) int { return tracker.Compare(a.Issue, b.Issue) }) {
		followed[f.Key], list = true, append(list, Task{f.Issue, &f.FollowUp})
	}
	for _, i := range p.Work {
		if !followed[i.Key] {
			list = append(list, Task{Issue: i})
		}
	}
	return list
}

// RetryAt returns the time when the first of the waiting issues may be worked again; zero: unknown.
func (p Plan) RetryAt(now time.Time) (at time.Time) {
	for _, left := range p.Skipped {
		if t := left.Skip.Until; (left.Skip.Code == journal.SkipRetry || left.Skip.Code == journal.SkipCap) && t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at
}

// Spent returns an error if issues wait for a cap that is used up; otherwise nil.
func (p Plan) Spent() error {
	for _, left := range p.Skipped {
		if left.Skip.Code == journal.SkipCap {
			return errors.New(left.Skip.Detail)
		}
	}
	return nil
}

// Waits reports whether the plan skips an issue for this reason.
func (p Plan) Waits(code journal.SkipCode) bool {
	return slices.ContainsFunc(p.Skipped, func(s Skipped) bool { return s.Skip.Code == code })
}

// UnknownKeyError means that a key from the caller names no issue of the backlog. It wraps tracker.ErrNotFound.
type UnknownKeyError struct {
	Key     string
	Nearest string // a similar key, or Key itself if the issue is gone; may be empty
}

// Unwrap returns tracker.ErrNotFound.
func (*UnknownKeyError) Unwrap() error { return tracker.ErrNotFound }

func (e *UnknownKeyError) Error() string {
	if e.Gone() {
		return fmt.Sprintf("issue %q is not in the backlog any more", e.Key)
	}
	return fmt.Sprintf("no issue %q in the backlog", e.Key)
}

// Gone reports whether there was such an issue.
func (e *UnknownKeyError) Gone() bool { return e.Key != "" && e.Nearest == e.Key }

// Plan lists the backlog and makes the plan.
func (p *Planner) Plan(ctx context.Context, q Query) (Plan, error) {
	listing, err := p.Run.Tracker.List(ctx, tracker.Query{Labels: p.Require, Unworked: p.unworkedLabels(q.Keys)})
	if err != nil {
		return Plan{}, fmt.Errorf("list backlog: %w", err)
	}
	unlisted, err := p.readUnlisted(ctx, listing, q.Keys)
	if err != nil {
		return Plan{}, err
	}
	v, err := p.view(ctx, q.Keys, listing.Issues)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Problems: listing.Problems, Skipped: unlisted, Cycles: tracker.Cycles(listing.Issues), Merged: q.Merged, Asked: v.askedSince(q.Ended)}
	for _, issue := range listing.Issues {
		if !issue.Open || !v.isWanted(issue.Key) {
			continue
		}
		if v.needsText(issue) {
			full, err := p.Run.Tracker.Get(ctx, issue.Key)
			switch {
			case err == nil:
				issue = full
			case errors.Is(err, tracker.ErrNotFound):
			case ctx.Err() != nil || publish.Unreachable(err):
				return Plan{}, fmt.Errorf("read issue %s: %w", issue.Key, err)
			default: // it keeps no other issue waiting
				plan.Problems = append(plan.Problems, tracker.Problem{Where: issue.URL, Err: fmt.Errorf("read the issue: %w", err)})
				continue
			}
		}
		if issue = review.Closed(issue, q.Merged); !issue.Open {
			continue
		}
		if skip := v.whyNot(issue); skip != nil {
			plan.Skipped = append(plan.Skipped, Skipped{issue, *skip})
		} else {
			plan.Work = append(plan.Work, issue)
		}
	}
	v.addReviews(plan.Skipped, listing.Issues)
	slices.SortFunc(plan.Work, tracker.Compare)
	if err := p.addFollowUps(ctx, v, &plan); err != nil {
		return plan, err
	}
	return plan, p.limitToStartable(ctx, v, q, listing.Issues, &plan)
}

// view has the state, apart from the issue itself, that decides whether an issue may be worked.
type view struct {
	p            *Planner
	keys         []string // from the caller; empty: all
	claims       map[string]worktree.ClaimState
	finished     map[string]worktree.ClaimRecord // records of finished issues
	reportedHere map[string]bool                 // finished issues that this host has reported
	last         map[string]journal.Record
	tally        map[string]journal.Tally       // counts over all machines
	held         map[string]*checkout.HeldError // branches that checkouts of the user's have
	capped       *journal.Skip                  // set if a cap of the project is reached
	now          time.Time
}

func (p *Planner) newView(keys []string) view {
	return view{
		p: p, keys: keys, now: time.Now(), finished: map[string]worktree.ClaimRecord{}, reportedHere: map[string]bool{},
		last: map[string]journal.Record{}, tally: map[string]journal.Tally{},
	}
}

// view makes a view of the issues, and of those for which a command asks for another run.
func (p *Planner) view(ctx context.Context, keys []string, issues []tracker.Issue) (view, error) {
	v := p.newView(keys)
	v.held, _ = p.Run.Repo.HeldBranches(ctx, p.BranchPrefix) // after a failure the run says why it cannot begin
	v.capped = admission.Skip(p.Full(ctx))
	var err error
	if v.claims, err = p.Claims(ctx); err != nil {
		return v, err
	}
	var read []string
	for _, i := range issues {
		read = append(read, i.Key)
	}
	for key, c := range v.claims {
		if c.Err == nil && len(c.Record.Asked) > 0 {
			read = append(read, key)
		}
	}
	return v, v.load(ctx, read)
}

// load adds only these issues: the journal may have many more.
func (v view) load(ctx context.Context, keys []string) error {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		_, known := v.tally[key]
		return known || !v.isWanted(key)
	})
	if len(keys) == 0 {
		return nil
	}
	runs, err := v.p.Run.Store.Find(ctx, journal.Query{Pool: v.p.Run.Pool, Keys: keys, Kind: journal.KindIssue, Latest: true})
	for _, r := range runs {
		v.last[r.Key] = r
		v.tally[r.Key] = tally.Newest(r, worktree.ClaimRecord{})
	}
	for _, key := range keys {
		c, claimed := v.claims[key]
		if claimed && c.Err == nil {
			v.tally[key] = tally.Newest(v.last[key], c.Record)
		}
		if c.Finished != nil {
			err = errors.Join(err, v.addFinished(ctx, key, *c.Finished))
		}
	}
	return err
}

// needsText reports whether the decision depends on whether the issue's text has changed. A listing may lack parts of the text,
// such as comments.
func (v view) needsText(issue tracker.Issue) bool {
	last := v.last[issue.Key]
	_, done := v.finished[issue.Key]
	labels := v.p.Run.Labels
	return issue.Unfit(v.p.Require, v.p.Exclude).Code == "" && !issue.HasLabel(labels.NeedsHuman) &&
		(done && !v.reportedHere[issue.Key] || issue.HasLabel(labels.NeedsInfo) || last.Unlabelled != "" ||
			v.waitsForRetry(issue.Key) || v.tally[issue.Key].Stopped)
}

// waitsForRetry reports whether the issue's retry time is still to come.
func (v view) waitsForRetry(key string) bool {
	t := v.tally[key]
	chain := v.p.Run.Chain(t.Attempts + 1)
	t.Parked = journal.ParkedAt(chain, t.Parked)
	return t.MustWait(v.now, chain.Choices())
}

func (v view) isWanted(key string) bool { return len(v.keys) == 0 || slices.Contains(v.keys, key) }

// whyNot returns nil for an issue that may be worked. Issues that a person has named may wait for a retry, be done, or be handed
// over.
func (v view) whyNot(issue tracker.Issue) *journal.Skip {
	if skip := decide.Unfit(v.p.Run.Labels, v.p.Require, v.p.Exclude, issue); skip != nil {
		return skip
	}
	if c, ok := v.claims[issue.Key]; ok {
		switch {
		case c.Err != nil:
			return &journal.Skip{Code: journal.SkipBadClaim, Detail: c.Err.Error()}
		case c.Record.Pending != nil:
			return &journal.Skip{Code: journal.SkipUnreported, Run: c.Record.Run}
		case tally.Held(c):
			return &journal.Skip{Code: journal.SkipClaimed, Run: c.Holder.Run, Host: c.Holder.Host}
		}
	}
	if len(v.keys) > 0 {
		return v.cannotBegin(issue.Key)
	}
	labels, last, t := v.p.Run.Labels, v.last[issue.Key], v.tally[issue.Key]
	edited := t.Hash != "" && t.Hash != issue.Hash()
	d, done := v.finished[issue.Key]
	switch {
	case issue.HasLabel(labels.NeedsHuman):
		return &journal.Skip{Code: journal.SkipHuman, Detail: labels.NeedsHuman, Outcome: t.Outcome}
	case issue.HasLabel(labels.NeedsInfo) && (!edited || t.Outcome != journal.NeedsInfo):
		return &journal.Skip{Code: journal.SkipAnswer, Detail: labels.NeedsInfo}
	case last.Unlabelled != "" && last.Verdict.Final && !edited && t.Asked == nil:
		return &journal.Skip{Code: journal.SkipLabels, Detail: v.p.Require[0], Run: last.ID, Outcome: last.Verdict.Outcome}
	case v.waitsForRetry(issue.Key) && !edited:
		return &journal.Skip{Code: journal.SkipRetry, Until: t.RetryAt, Attempt: t.Attempts, Outcome: t.Outcome}
	case t.Stopped && !edited && last.ID != t.Run && v.stopIsUnshown(issue, t):
		return &journal.Skip{Code: journal.SkipHalted, Run: t.Run, Host: t.Host, Outcome: t.Outcome}
	case done && d.Hash == issue.Hash() && v.mayBeOlder(issue, d.Run):
		return &journal.Skip{Code: journal.SkipDone, Run: d.Run, Host: d.Host, Outcome: journal.Outcome(d.Outcome)}
	}
	return v.cannotBegin(issue.Key)
}

// mayBeOlder reports whether the backlog may be in an older state than when the run ended the issue.
func (v view) mayBeOlder(issue tracker.Issue, run string) bool {
	reportedBefore := issue.Reported != nil && *issue.Reported < run
	return !v.reportedHere[issue.Key] || tracker.IsReadOnly(v.p.Run.Tracker) || reportedBefore
}

// stopIsUnshown reports whether the issue, as read, does not show the stop of its run: this copy is older, or nobody can write
// the stop there, and the issue has not changed since.
func (v view) stopIsUnshown(issue tracker.Issue, t journal.Tally) bool {
	if tracker.IsReadOnly(v.p.Run.Tracker) {
		return t.Outcome == journal.Interrupted && !issue.Updated.After(t.At)
	}
	return issue.Reported != nil && *issue.Reported < t.Run
}

// unworkedLabels returns labels of issues that are never worked, so that their blockers need not be read.
func (p *Planner) unworkedLabels(keys []string) []string {
	if len(keys) > 0 { // named issues are worked even if they were handed over
		return p.Exclude
	}
	return append(slices.Clone(p.Exclude), p.Run.Labels.NeedsHuman)
}

// readUnlisted reads the named issues that the listing lacks. A key that names no issue is an error.
func (p *Planner) readUnlisted(ctx context.Context, l tracker.Listing, keys []string) ([]Skipped, error) {
	var out []Skipped
	for _, key := range keys {
		if slices.ContainsFunc(l.Issues, func(i tracker.Issue) bool { return i.Key == key }) {
			continue
		}
		issue, err := p.ReadNamed(ctx, key)
		if unknown, ok := errors.AsType[*UnknownKeyError](err); ok {
			unknown.Nearest = l.Nearest(key)
		}
		if err != nil {
			return nil, err
		}
		skip := journal.Skip{Code: journal.SkipUnlisted}
		out = append(out, Skipped{issue, *cmp.Or(decide.Unfit(p.Run.Labels, p.Require, p.Exclude, issue), &skip)})
	}
	return out, nil
}

// ReadNamed reads the issue with a key from the caller. If there is none, it returns an UnknownKeyError.
func (p *Planner) ReadNamed(ctx context.Context, key string) (tracker.Issue, error) {
	issue, err := p.Run.Tracker.Get(ctx, key)
	if errors.Is(err, tracker.ErrNotFound) {
		err = &UnknownKeyError{Key: key}
	} else if err != nil {
		err = fmt.Errorf("read issue %s: %w", key, err)
	}
	return issue, err
}

// Reviewed returns the part of the backlog that is in review; with keys, only these issues.
func (p *Planner) Reviewed(keys []string) review.Backlog {
	return review.Backlog{
		Repo: p.Run.Repo, Tracker: p.Run.Tracker, Store: p.Run.Store, Pool: p.Run.Pool, Labels: p.Run.Labels, Claims: p.Claims, Keys: keys,
		PickUp: p.Require[0],
	}
}

// Unmerged returns the keys of open issues in review whose branches have commits that the base lacks.
func (p *Planner) Unmerged(ctx context.Context) ([]string, error) {
	base, err := p.Run.Repo.Base(ctx, p.Run.Base)
	if err != nil {
		return nil, err
	}
	snapshot, err := p.Index.Read(ctx, base.Commit)
	if err != nil {
		return nil, err
	}
	return p.Reviewed(nil).Unmerged(ctx, base, snapshot.Tips)
}
