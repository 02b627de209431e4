package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/pool/admission"
	"github.com/ralph-pool/ralph/pool/decide"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/review"
	"github.com/ralph-pool/ralph/pool/tally"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Plan is what a sweep would do now.
type Plan struct {
	Work     []tracker.Issue   // in the order of their start, after the follow-ups
	FollowUp []FollowUp        // ralph's own open requests that need another run
	HandOver []FollowUp        // requests that have used up their rounds; a sweep hands them to a person
	After    []Skipped         // issues that wait for runs with the same files or label
	Later    []Skipped         // issues of Work that lost their place in the order to unmerged changes of the same files
	Skipped  []Skipped         // every other open issue
	Problems []tracker.Problem // parts of the backlog that could not be read
	Cycles   []tracker.Cycle   // open issues that wait for each other
	Merged   []tracker.Issue   // issues in review that a person has merged; a sweep closes them first; set by Preview only
}

// Skipped is an issue that is not worked, and why.
type Skipped struct {
	Issue tracker.Issue
	Skip  journal.Skip
}

// FollowUp is an open request of ralph's that needs another run, and its issue.
type FollowUp struct {
	tracker.FollowUp
	Issue  tracker.Issue
	Rounds int // runs that the request has had, on all machines

	mark string // of the issue's report
}

// UnknownKeyError is a key from the caller that is no issue of the backlog. It is a tracker.ErrNotFound.
type UnknownKeyError struct {
	Key     string
	Nearest string // a similar key; may be empty
}

// Unwrap makes errors.Is(err, tracker.ErrNotFound) true.
func (*UnknownKeyError) Unwrap() error { return tracker.ErrNotFound }

func (e *UnknownKeyError) Error() string { return fmt.Sprintf("no issue %q in the backlog", e.Key) }

// Plan lists the backlog: what a sweep would work, in which order, and for every other open issue the reason why not.
// With keys it is restricted to them. It changes nothing.
func (w *Worker) Plan(ctx context.Context, keys ...string) (Plan, error) {
	return until(ctx, w, func(ctx context.Context) (Plan, error) {
		base, err := w.c.Run.Repo.Base(ctx, w.c.Run.Base)
		if err != nil && !errors.Is(err, worktree.ErrNoBase) {
			return Plan{}, err
		}
		return w.plan(ctx, base, nil, turns{}, keys)
	})
}

// Preview is the Plan after the issues are closed that a sweep would close first.
func (w *Worker) Preview(ctx context.Context, keys ...string) (Plan, error) {
	return until(ctx, w, func(ctx context.Context) (Plan, error) {
		base, err := w.newBase(ctx)
		var merged []tracker.Issue
		if err == nil {
			merged, err = w.reviewed(keys).Merged(ctx, base)
		}
		if err != nil {
			return Plan{}, err
		}
		return w.plan(ctx, base, merged, turns{}, keys)
	})
}

// Maintain does what a sweep does besides runs: it obeys commands, closes issues that people have merged, hands requests over. It
// returns the Plan after that.
func (w *Worker) Maintain(ctx context.Context) (Plan, error) {
	return until(ctx, w, func(ctx context.Context) (Plan, error) {
		w.obeyAll(ctx, nil)
		if base, err := w.runner.Base(ctx); err == nil {
			w.closeMerged(ctx, base, nil)
		}
		plan, err := w.Plan(ctx)
		w.handOver(ctx, plan.HandOver)
		return plan, err
	})
}

// plan makes the plan of a sweep that has started the issues in t, as if the merged issues were closed.
func (w *Worker) plan(ctx context.Context, base worktree.Base, merged []tracker.Issue, t turns, keys []string) (Plan, error) {
	listing, err := w.c.Run.Tracker.List(ctx, tracker.Query{Labels: w.c.Require, Unworked: w.unworked(keys)})
	if err != nil {
		return Plan{}, fmt.Errorf("list backlog: %w", err)
	}
	unlisted, err := w.unlisted(ctx, listing, keys)
	if err != nil {
		return Plan{}, err
	}
	v, err := w.view(ctx, keys, listing.Issues)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Problems: listing.Problems, Skipped: unlisted, Cycles: tracker.Cycles(listing.Issues), Merged: merged}
	for _, issue := range listing.Issues {
		if !issue.Open || !v.wanted(issue.Key) {
			continue
		}
		if v.needsText(issue) {
			full, err := w.c.Run.Tracker.Get(ctx, issue.Key)
			if err != nil && !errors.Is(err, tracker.ErrNotFound) {
				return Plan{}, fmt.Errorf("read issue %s: %w", issue.Key, err)
			}
			if err == nil {
				issue = full
			}
		}
		if issue = review.Closed(issue, merged); !issue.Open {
			continue
		}
		if skip := v.whyNot(issue); skip != nil {
			plan.Skipped = append(plan.Skipped, Skipped{issue, *skip})
		} else {
			plan.Work = append(plan.Work, issue)
		}
	}
	slices.SortFunc(plan.Work, tracker.Before)
	if plan.FollowUp, plan.HandOver, err = w.followUps(ctx, v); err != nil {
		return plan, err
	}
	return plan, w.apart(ctx, v, base, listing.Issues, &plan, t)
}

// view is the state besides the issue itself that decides whether it may be worked.
type view struct {
	w      *Worker
	keys   []string // from the caller; empty: all
	claims map[string]worktree.ClaimState
	done   map[string]worktree.Record // finished
	here   map[string]bool            // those of done that this host has reported
	last   map[string]journal.Record
	tally  map[string]journal.Tally // counts over all machines
	capped *journal.Skip            // a cap of the project is reached
	now    time.Time
}

func (w *Worker) newView(keys []string) view {
	return view{
		w: w, keys: keys, now: time.Now(), done: map[string]worktree.Record{}, here: map[string]bool{},
		last: map[string]journal.Record{}, tally: map[string]journal.Tally{},
	}
}

// view makes a view that has the issues, and those for which people have commanded another run.
func (w *Worker) view(ctx context.Context, keys []string, issues []tracker.Issue) (view, error) {
	v := w.newView(keys)
	v.capped = admission.Skip(w.runner.Admission().Full(ctx))
	var err error
	if v.claims, err = w.c.Claims.Claims(ctx); err != nil {
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
	return v, v.read(ctx, read)
}

// read adds issues: the journal may have many more than a sweep looks at.
func (v view) read(ctx context.Context, keys []string) error {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		_, known := v.tally[key]
		return known || !v.wanted(key)
	})
	if len(keys) == 0 {
		return nil
	}
	runs, err := v.w.c.Run.Store.Find(ctx, journal.Query{Pool: v.w.c.Run.Name, Keys: keys, Kind: journal.KindIssue, Latest: true})
	for _, r := range runs {
		v.last[r.Key] = r
		v.tally[r.Key] = tally.Newest(r, worktree.Record{})
	}
	for _, key := range keys {
		c, claimed := v.claims[key]
		if claimed && c.Err == nil {
			v.tally[key] = tally.Newest(v.last[key], c.Record)
		}
		if c.Finished != nil {
			err = errors.Join(err, v.note(ctx, key, *c.Finished))
		}
	}
	return err
}

// note adds the record of a finished run.
func (v view) note(ctx context.Context, key string, d worktree.Record) error {
	known, err := v.w.find(ctx, d.Run)
	v.done[key], v.here[key] = d, known != nil && !known.Elsewhere
	return err
}

// needsText reports that the decision depends on whether the issue's text has changed. A listing may lack parts of the text, such
// as comments.
func (v view) needsText(issue tracker.Issue) bool {
	last := v.last[issue.Key]
	_, done := v.done[issue.Key]
	labels := v.w.c.Run.Labels
	return issue.Unfit(v.w.c.Require, v.w.c.Exclude).Code == "" && !issue.HasLabel(labels.NeedsHuman) &&
		(done && !v.here[issue.Key] || issue.HasLabel(labels.NeedsInfo) || last.Unlabelled != "" || v.waits(issue.Key))
}

// waits reports that the issue's retry time has not come yet.
func (v view) waits(key string) bool {
	t := v.tally[key]
	return t.Waits(v.now, v.w.c.Run.Chain(t.Attempts+1).Choices())
}

func (v view) wanted(key string) bool { return len(v.keys) == 0 || slices.Contains(v.keys, key) }

// whyNot is nil for an issue that may be worked. Keys named by a person need no retry time, and may be done or handed over.
func (v view) whyNot(issue tracker.Issue) *journal.Skip {
	if skip := decide.Unfit(v.w.c.Run.Labels, v.w.c.Require, v.w.c.Exclude, issue); skip != nil {
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
		return v.capped
	}
	labels, last, t := v.w.c.Run.Labels, v.last[issue.Key], v.tally[issue.Key]
	edited := t.Hash != "" && t.Hash != issue.Hash()
	d, done := v.done[issue.Key]
	switch {
	case issue.HasLabel(labels.NeedsHuman):
		return &journal.Skip{Code: journal.SkipHuman, Detail: labels.NeedsHuman}
	case issue.HasLabel(labels.NeedsInfo) && (!edited || t.Outcome != journal.NeedsInfo):
		return &journal.Skip{Code: journal.SkipAnswer, Detail: labels.NeedsInfo}
	case last.Unlabelled != "" && last.Verdict.Final && !edited && t.Asked == nil:
		return &journal.Skip{Code: journal.SkipLabels, Detail: v.w.c.Require[0], Run: last.ID, Outcome: last.Verdict.Outcome}
	case v.waits(issue.Key) && !edited:
		return &journal.Skip{Code: journal.SkipRetry, Until: t.RetryAt, Attempt: t.Attempts, Outcome: t.Outcome}
	case done && (!v.here[issue.Key] || tracker.IsReadOnly(v.w.c.Run.Tracker) || issue.Reported != nil && *issue.Reported < d.Run) && d.Hash == issue.Hash(): // an older state of the backlog
		return &journal.Skip{Code: journal.SkipDone, Run: d.Run, Host: d.Host, Outcome: journal.Outcome(d.Outcome)}
	}
	return v.capped
}

// unworked are labels of issues that are never worked: their blockers need not be read.
func (w *Worker) unworked(keys []string) []string {
	if len(keys) > 0 { // then a hand-over to a person does not count
		return w.c.Exclude
	}
	return append(slices.Clone(w.c.Exclude), w.c.Run.Labels.NeedsHuman)
}

// unlisted reads the named issues that the listing lacks. A name that is no issue is an error.
func (w *Worker) unlisted(ctx context.Context, l tracker.Listing, keys []string) ([]Skipped, error) {
	var out []Skipped
	for _, key := range keys {
		if slices.ContainsFunc(l.Issues, func(i tracker.Issue) bool { return i.Key == key }) {
			continue
		}
		issue, err := w.named(ctx, key)
		if unknown, ok := errors.AsType[*UnknownKeyError](err); ok {
			unknown.Nearest = l.Nearest(key)
		}
		if err != nil {
			return nil, err
		}
		skip := journal.Skip{Code: journal.SkipUnlisted}
		out = append(out, Skipped{issue, *cmp.Or(decide.Unfit(w.c.Run.Labels, w.c.Require, w.c.Exclude, issue), &skip)})
	}
	return out, nil
}

// Prompt is the exact prompt of the first iteration of the issue's next run. Commands in the template are shown, not run.
func (w *Worker) Prompt(ctx context.Context, key string) (string, error) {
	return until(ctx, w, func(ctx context.Context) (string, error) {
		issue, err := w.c.Run.Tracker.Get(ctx, key)
		if err != nil {
			return "", err
		}
		base, err := w.c.Run.Repo.Base(ctx, w.c.Run.Base)
		if err != nil {
			return "", err
		}
		rec := w.newRecord(issue)
		rec.Base = base.Name
		if _, err := w.count(ctx, &rec, worktree.Record{}); err != nil {
			return "", err
		}
		return w.runner.Prompt(ctx, issue, rec.Run)
	})
}

func (w *Worker) history(ctx context.Context, key string) (journal.History, error) {
	return w.c.Run.Store.Find(ctx, journal.Query{Pool: w.c.Run.Name, Key: key, Kind: journal.KindIssue})
}
