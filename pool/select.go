package pool

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/nearest"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Plan is what a sweep would do now.
type Plan struct {
	Work     []tracker.Issue   // in the order they would be started, after the follow-ups
	FollowUp []FollowUp        // ralph's own open requests that need another run
	HandOver []FollowUp        // those that have had as many runs as they may have; a sweep hands them to a person
	Skipped  []Skip            // every other open issue
	Problems []tracker.Problem // what could not be read
}

// Skip is an issue that would not be worked, and why.
type Skip struct {
	Issue  tracker.Issue
	Reason string
}

// FollowUp is an open request of ralph's that needs another run, and its issue.
type FollowUp struct {
	tracker.FollowUp
	Issue tracker.Issue
}

// UnknownKeyError says that a key the caller named is no issue of the backlog.
type UnknownKeyError struct {
	Key     string
	Nearest string // a key that looks like it; may be empty
}

func (e *UnknownKeyError) Error() string {
	if e.Nearest != "" {
		return fmt.Sprintf("no issue %q in the backlog; did you mean %q?", e.Key, e.Nearest)
	}
	return fmt.Sprintf("no issue %q in the backlog; `ralph work --dry-run` lists them", e.Key)
}

// Plan lists the backlog and says what a sweep would work, in which order, and for every other open issue why not.
// With keys it is restricted to them. It changes nothing.
func (p *Pool) Plan(ctx context.Context, keys ...string) (Plan, error) {
	listing, err := p.cfg.Tracker.List(ctx, tracker.Query{})
	if err != nil {
		return Plan{}, fmt.Errorf("list backlog: %w", err)
	}
	unlisted, err := p.unlisted(ctx, listing, keys)
	if err != nil {
		return Plan{}, err
	}
	v, err := p.look(ctx, keys)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Problems: listing.Problems, Skipped: unlisted}
	for _, issue := range listing.Issues {
		if !issue.Open || !v.wanted(issue.Key) {
			continue
		}
		if v.history(issue) { // a list need not have all of the text, such as comments
			full, err := p.cfg.Tracker.Get(ctx, issue.Key)
			if err != nil && !errors.Is(err, tracker.ErrNotFound) {
				return Plan{}, fmt.Errorf("read issue %s: %w", issue.Key, err)
			}
			if err == nil {
				issue = full
			}
		}
		if reason := v.whyNot(issue); reason != "" {
			plan.Skipped = append(plan.Skipped, Skip{issue, reason})
		} else {
			plan.Work = append(plan.Work, issue)
		}
	}
	order(plan.Work)
	plan.FollowUp, plan.HandOver, err = p.followUps(ctx, v)
	return plan, err
}

// view is everything beside the issue itself that decides whether it may be worked.
type view struct {
	pool   *Pool
	keys   []string // what the caller named; empty: everything
	claims map[string]worktree.ClaimState
	done   map[string]worktree.Done // finished elsewhere; what this host has finished its backlog shows
	last   map[string]Record
	now    time.Time
}

func (p *Pool) look(ctx context.Context, keys []string) (view, error) {
	v := view{pool: p, keys: keys, now: time.Now()}
	var err error
	if v.claims, v.done, err = p.cfg.Repo.Claims(ctx); err != nil {
		return v, err
	}
	for key, d := range v.done {
		if ours, err := p.cfg.Journal.has(ctx, d.Run); err != nil {
			return v, err
		} else if ours {
			delete(v.done, key)
		}
	}
	v.last, err = p.cfg.Journal.Last(ctx)
	return v, err
}

// history reports that what became of the issue before may matter, and with it whether its text has changed since.
func (v view) history(issue tracker.Issue) bool {
	last := v.last[issue.Key]
	_, done := v.done[issue.Key]
	return v.pool.unfit(issue) == "" && (done || issue.HasLabel(v.pool.cfg.Labels.NeedsInfo) || last.Verdict.Unlabelled != "" ||
		last.Verdict.RetryAt.After(v.now))
}

func (v view) wanted(key string) bool { return len(v.keys) == 0 || slices.Contains(v.keys, key) }

// whyNot is empty for an issue that may be worked. A person who names a key takes the decisions that ralph would wait
// for: retry times, a hand-over to a person, and work done elsewhere do not count then.
func (v view) whyNot(issue tracker.Issue) string {
	if reason := v.pool.unfit(issue); reason != "" {
		return reason
	}
	if c, ok := v.claims[issue.Key]; ok && c.Holder.Run == "" {
		return fmt.Sprintf("its claim cannot be read; if no other ralph is at work: git update-ref -d refs/ralph/claims/%s", issue.Key)
	} else if ok && c.Decided {
		return fmt.Sprintf("run %s has ended, and is still to be reported", c.Holder.Run)
	} else if ok && !c.Gone {
		return fmt.Sprintf("claimed by run %s on %s", c.Holder.Run, c.Holder.Host)
	}
	if len(v.keys) > 0 {
		return ""
	}
	labels, last := v.pool.cfg.Labels, v.last[issue.Key]
	edited := last.Run != "" && last.Hash != hash(issue)
	if issue.HasLabel(labels.NeedsHuman) {
		return fmt.Sprintf("needs a human (label %s); `ralph work %s` tries it again", labels.NeedsHuman, issue.Key)
	}
	if issue.HasLabel(labels.NeedsInfo) && (!edited || last.Verdict.Outcome != NeedsInfo) {
		return fmt.Sprintf("waits for an answer (label %s): edit the issue or remove the label", labels.NeedsInfo)
	}
	if last.Verdict.Unlabelled != "" && last.Verdict.Final && !edited {
		return fmt.Sprintf("%s by run %s, but its labels could not be changed (%s): take label %s away yourself",
			last.Verdict.Outcome, last.Run, last.Verdict.Unlabelled, v.pool.cfg.Require[0])
	}
	if last.Verdict.RetryAt.After(v.now) && !edited {
		return fmt.Sprintf("waits until %s after attempt %d (%s)", last.Verdict.RetryAt.Local().Format(time.DateTime),
			last.Attempt, last.Verdict.Outcome)
	}
	if d, ok := v.done[issue.Key]; ok && d.Hash == hash(issue) {
		return fmt.Sprintf("already %s by run %s on %s; `ralph work %s` works it again", d.Outcome, d.Run, d.Host, issue.Key)
	}
	return ""
}

// unfit says why the issue itself, as it stands in the tracker, may not be worked.
func (p *Pool) unfit(issue tracker.Issue) string { return p.unfitFor(issue, p.cfg.Require) }

// unfitFor is unfit for a run that was picked up by these labels.
func (p *Pool) unfitFor(issue tracker.Issue, require []string) string {
	if !issue.Open {
		return "closed"
	}
	for _, l := range require {
		if !issue.HasLabel(l) {
			return "lacks label " + l
		}
	}
	for _, l := range p.cfg.Exclude {
		if issue.HasLabel(l) {
			return "carries excluded label " + l
		}
	}
	if issue.Taken != "" {
		return issue.Taken
	}
	var open []string
	for _, b := range issue.BlockedBy {
		if b.Open {
			open = append(open, b.Key)
		}
	}
	if len(open) > 0 {
		return "blocked by " + strings.Join(open, ", ")
	}
	return ""
}

// order sorts by priority, then oldest, then key.
func order(issues []tracker.Issue) { slices.SortFunc(issues, before) }

func before(a, b tracker.Issue) int {
	last := func(i int) int { return cmp.Or(i, math.MaxInt) }
	if c := cmp.Compare(last(a.Priority), last(b.Priority)); c != 0 {
		return c
	}
	if az, bz := a.Created.IsZero(), b.Created.IsZero(); az != bz {
		if az {
			return 1
		}
		return -1
	}
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Key, b.Key))
}

// unlisted looks at the named issues that no list of open ones has. A name that is no issue at all is an error.
func (p *Pool) unlisted(ctx context.Context, l tracker.Listing, keys []string) ([]Skip, error) {
	var out []Skip
	for _, key := range keys {
		if slices.ContainsFunc(l.Issues, func(i tracker.Issue) bool { return i.Key == key }) {
			continue
		}
		issue, err := p.cfg.Tracker.Get(ctx, key)
		switch {
		case errors.Is(err, tracker.ErrNotFound):
			return nil, &UnknownKeyError{Key: key, Nearest: nearestKey(key, l)}
		case err != nil:
			return nil, fmt.Errorf("read issue %s: %w", key, err)
		}
		out = append(out, Skip{issue, cmp.Or(p.unfit(issue), "not listed")})
	}
	return out, nil
}

// nearestKey is the key of the backlog that one is a slip of. A number is none of another.
func nearestKey(key string, l tracker.Listing) string {
	if _, err := strconv.Atoi(key); err == nil {
		return ""
	}
	var keys []string
	for _, i := range l.Issues {
		keys = append(keys, i.Key)
	}
	return nearest.To(key, keys)
}

// approvedText reports whether title and body are what an earlier run was allowed to work from. Who edited them since
// cannot be told any more: the label is gone.
func approvedText(issue tracker.Issue, runs []Record, claim *worktree.Claim) bool {
	before := ""
	if last, ok := lastEnded(runs); ok {
		before = last.Hash
	} else if d, ok := claim.Done(); ok { // another host has worked it
		before = d.Hash
	}
	return strings.HasPrefix(before, textHash(issue))
}

// hash is the fingerprint of what a trusted person approved: title, body and trusted comments. It begins with textHash.
func hash(issue tracker.Issue) string {
	said := []string{}
	for _, c := range issue.Comments {
		if c.Trusted {
			said = append(said, c.Body)
		}
	}
	return textHash(issue) + digest(said...)
}

// textHash is the fingerprint of title and body: what has to be as it was approved when a request is worked again, while
// people who may direct ralph go on talking.
func textHash(issue tracker.Issue) string { return digest(issue.Title, issue.Body) }

// digest has 128 bits of texts of any number and length.
func digest(texts ...string) string {
	sum := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(sum, "%d:%s", len(t), t)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
