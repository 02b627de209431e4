package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/pool/admission"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/review"
	"github.com/ralph-pool/ralph/pool/tally"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Plan is what a sweep would do now.
type Plan struct {
	Work     []tracker.Issue   // in the order they would be started, after the follow-ups
	FollowUp []FollowUp        // ralph's own open requests that need another run
	HandOver []FollowUp        // those that have had as many runs as they may have; a sweep hands them to a person
	After    []Skipped         // once runs that change the same files, or have the same label, have ended
	Later    []Skipped         // issues of Work that come later than in their order, for what is not merged yet
	Skipped  []Skipped         // every other open issue
	Problems []tracker.Problem // what could not be read
	Cycles   []tracker.Cycle   // open issues that wait for each other
	Merged   []tracker.Issue   // in review, and merged by a person: a sweep closes them first; only Preview looks
}

// Skipped is an issue that would not be worked, and why.
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

// UnknownKeyError says that a key the caller named is no issue of the backlog.
type UnknownKeyError struct {
	Key     string
	Nearest string // a key that looks like it; may be empty
}

func (e *UnknownKeyError) Error() string { return fmt.Sprintf("no issue %q in the backlog", e.Key) }

// Plan lists the backlog and says what a sweep would work, in which order, and for every other open issue why not.
// With keys it is restricted to them. It changes nothing.
func (w *Worker) Plan(ctx context.Context, keys ...string) (Plan, error) {
	base, err := w.cfg.Repo.Base(ctx, w.cfg.Base)
	if errors.Is(err, worktree.ErrNoBase) {
		err = nil
	}
	if err != nil {
		return Plan{}, err
	}
	return w.plan(ctx, base, nil, turns{}, keys)
}

// Preview is the Plan of a sweep that starts now: with the issues that it would close first, and what that frees.
func (w *Worker) Preview(ctx context.Context, keys ...string) (Plan, error) {
	base, err := w.runner.Base(ctx)
	if err != nil {
		return Plan{}, err
	}
	merged, err := w.reviewed(keys).Merged(ctx, base)
	if err != nil {
		return Plan{}, err
	}
	return w.plan(ctx, base, merged, turns{}, keys)
}

// Tend does what a sweep does before runs: commands, what people have merged, and hand-overs. It returns the Plan then.
func (w *Worker) Tend(ctx context.Context) (Plan, error) {
	w.carryOutAll(ctx, nil)
	if base, err := w.runner.Base(ctx); err == nil {
		w.closeMerged(ctx, base, nil)
	}
	plan, err := w.Plan(ctx)
	w.handOver(ctx, plan.HandOver)
	return plan, err
}

// plan makes the plan as if the merged issues were closed, for a sweep that has taken issues.
func (w *Worker) plan(ctx context.Context, base worktree.Base, merged []tracker.Issue, t turns, keys []string) (Plan, error) {
	listing, err := w.cfg.Tracker.List(ctx, tracker.Query{Labels: w.c.Require, Unworked: w.unworked(keys)})
	if err != nil {
		return Plan{}, fmt.Errorf("list backlog: %w", err)
	}
	unlisted, err := w.unlisted(ctx, listing, keys)
	if err != nil {
		return Plan{}, err
	}
	v, err := w.view(ctx, keys)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Problems: listing.Problems, Skipped: unlisted, Cycles: tracker.Cycles(listing.Issues), Merged: merged}
	for _, issue := range listing.Issues {
		if !issue.Open || !v.wanted(issue.Key) {
			continue
		}
		if v.needsText(issue) {
			full, err := w.cfg.Tracker.Get(ctx, issue.Key)
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

// view is everything beside the issue itself that decides whether it may be worked.
type view struct {
	w      *Worker
	keys   []string // what the caller named; empty: everything
	claims map[string]worktree.ClaimState
	done   map[string]worktree.Record // finished
	here   map[string]bool            // of those: this host has reported it
	last   map[string]journal.Record
	tally  map[string]journal.Tally // of the runs on all machines
	capped *journal.Skip            // a cap of the project is spent
	now    time.Time
}

func (w *Worker) view(ctx context.Context, keys []string) (view, error) {
	claims, err := w.c.Claims.Claims(ctx)
	v := view{w: w, keys: keys, claims: claims, capped: admission.Skip(w.runner.Admission().Full(ctx)), now: time.Now(), last: map[string]journal.Record{}, tally: map[string]journal.Tally{}, done: map[string]worktree.Record{}, here: map[string]bool{}}
	if err != nil {
		return v, err
	}
	runs, err := w.cfg.Store.Find(ctx, journal.Query{Pool: w.cfg.Name, Kind: journal.KindIssue, Latest: true})
	for _, r := range runs {
		v.last[r.Key] = r
		v.tally[r.Key] = tally.Newest(r, worktree.Record{})
	}
	for key, c := range v.claims {
		if c.Err == nil {
			v.tally[key] = tally.Newest(v.last[key], c.Record)
		}
		if c.Finished != nil {
			err = errors.Join(err, v.note(ctx, key, *c.Finished))
		}
	}
	return v, err
}

// note adds the record of a finished run.
func (v view) note(ctx context.Context, key string, d worktree.Record) error {
	known, err := v.w.find(ctx, d.Run)
	v.done[key], v.here[key] = d, known != nil && !known.Elsewhere
	return err
}

// needsText reports that the issue's history matters, and with it whether its text has changed since: a list need not
// have all of the text, such as comments.
func (v view) needsText(issue tracker.Issue) bool {
	last := v.last[issue.Key]
	_, done := v.done[issue.Key]
	labels := v.w.cfg.Labels
	return v.w.unfit(issue, v.w.c.Require) == "" && !issue.HasLabel(labels.NeedsHuman) &&
		(done && !v.here[issue.Key] || issue.HasLabel(labels.NeedsInfo) || last.Unlabelled != "" || v.waits(issue.Key))
}

// waits reports that it is too early for a run of the issue by this agent.
func (v view) waits(key string) bool {
	t := v.tally[key]
	return t.Waits(v.now, v.w.cfg.Chain(t.Attempts+1).Choices())
}

func (v view) wanted(key string) bool { return len(v.keys) == 0 || slices.Contains(v.keys, key) }

// whyNot is nil for an issue that may be worked. A person who names a key takes the decisions that ralph would wait for:
// retry times, a hand-over to a person, and work done elsewhere do not count then.
func (v view) whyNot(issue tracker.Issue) *journal.Skip {
	if reason := v.w.unfit(issue, v.w.c.Require); reason != "" {
		return &journal.Skip{Code: journal.SkipUnfit, Detail: reason}
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
	labels, last, t := v.w.cfg.Labels, v.last[issue.Key], v.tally[issue.Key]
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
		return &journal.Skip{Code: journal.SkipRetry, Until: t.RetryAt, Attempt: max(1, t.Attempts), Outcome: t.Outcome}
	case done && (!v.here[issue.Key] || tracker.IsReadOnly(v.w.cfg.Tracker) || issue.Reported != nil && *issue.Reported < d.Run) && d.Hash == issue.Hash(): // an older state of the backlog
		return &journal.Skip{Code: journal.SkipDone, Run: d.Run, Host: d.Host, Outcome: journal.Outcome(d.Outcome)}
	}
	return v.capped
}

// unfit says why the issue itself, as it stands in the tracker, may not be worked by a run with these pick-up labels.
func (w *Worker) unfit(issue tracker.Issue, require []string) string {
	if !issue.Open {
		return "closed"
	}
	for _, l := range require {
		if !issue.HasLabel(l) {
			return "lacks label " + l
		}
	}
	for _, l := range w.c.Exclude {
		if issue.HasLabel(l) {
			return "carries excluded label " + l
		}
	}
	if issue.Taken != "" {
		return issue.Taken
	}
	if by := issue.Blockers(); by != "" {
		return "blocked by " + by
	}
	return ""
}

// unworked are the labels of issues that are not worked, whatever blocks them.
func (w *Worker) unworked(keys []string) []string {
	if len(keys) > 0 { // then a hand-over to a person does not count
		return w.c.Exclude
	}
	return append(slices.Clone(w.c.Exclude), w.cfg.Labels.NeedsHuman)
}

// unlisted looks at the named issues that no list of open ones has. A name that is no issue at all is an error.
func (w *Worker) unlisted(ctx context.Context, l tracker.Listing, keys []string) ([]Skipped, error) {
	var out []Skipped
	for _, key := range keys {
		if slices.ContainsFunc(l.Issues, func(i tracker.Issue) bool { return i.Key == key }) {
			continue
		}
		issue, err := w.cfg.Tracker.Get(ctx, key)
		switch {
		case errors.Is(err, tracker.ErrNotFound):
			return nil, &UnknownKeyError{Key: key, Nearest: l.Nearest(key)}
		case err != nil:
			return nil, fmt.Errorf("read issue %s: %w", key, err)
		}
		skip := journal.Skip{Code: journal.SkipUnlisted}
		if reason := w.unfit(issue, w.c.Require); reason != "" {
			skip = journal.Skip{Code: journal.SkipUnfit, Detail: reason}
		}
		out = append(out, Skipped{issue, skip})
	}
	return out, nil
}

// Prompt is exactly what the agent would be told about the issue in the first iteration of its next run. Commands in
// the template are shown, not run.
func (w *Worker) Prompt(ctx context.Context, key string) (string, error) {
	issue, err := w.cfg.Tracker.Get(ctx, key)
	if err != nil {
		return "", err
	}
	base, err := w.cfg.Repo.Base(ctx, w.cfg.Base)
	if err != nil {
		return "", err
	}
	rec := w.newRecord(issue)
	rec.Base = base.Name
	if _, err := w.count(ctx, &rec, worktree.Record{}); err != nil {
		return "", err
	}
	return w.runner.Prompt(ctx, issue, rec.Run)
}

func (w *Worker) history(ctx context.Context, key string) (journal.History, error) {
	return w.cfg.Store.Find(ctx, journal.Query{Pool: w.cfg.Name, Key: key, Kind: journal.KindIssue})
}
