// Package command carries out the commands that people give on a tracker: stop a run, work an issue again, or explain. Package
// pool uses it.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/claims"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/internal/tally"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Handler carries out commands. It is safe for concurrent use.
type Handler struct {
	Run     config.Config // with its defaults
	Planner *backlog.Planner
	Taker   *claims.Taker
	// NewRecord returns the record of a new run of an issue.
	NewRecord func(tracker.Issue) journal.Record
	// Explain describes the state of the issue. holder is the host that works it; empty: none.
	Explain func(last journal.Record, t journal.Tally, holder string) string
	// Stop ends the runs of an issue in this process.
	Stop func(key string, why tracker.Unfit)

	mu          sync.Mutex
	lastFailure string // guarded by mu; the last reported failure
}

// ObeyAll carries out the commands that people have given on the tracker. A command takes effect and is then answered. A crash in
// between repeats it; by the claim's record or the label the repeat finds the effect. With keys it handles only these issues. Its
// failures end no sweep.
func (h *Handler) ObeyAll(ctx context.Context, keys []string) {
	commander, ok := tracker.As[tracker.Commander](h.Run.Tracker)
	if !ok || tracker.IsReadOnly(h.Run.Tracker) {
		return
	}
	list, err := commander.Commands(ctx, h.Planner.BranchPrefix)
	if err != nil {
		h.warn("", fmt.Errorf("look for commands: %w", err))
	}
	waiting := map[string]bool{} // keys whose later commands have to wait
	for _, c := range list {
		if ctx.Err() != nil {
			return
		}
		if waiting[c.Key] || len(keys) > 0 && !slices.Contains(keys, c.Key) {
			continue
		}
		answer, err := h.obey(ctx, commander, c)
		if err == nil && answer != nil {
			err = commander.Answer(ctx, c, *answer)
			h.Run.Log.Info("command answered", "issue", c.Key, "command", c.Verb, "by", c.By, "refused", answer.Refused)
		}
		if waiting[c.Key] = answer == nil || err != nil; err != nil && !errors.Is(err, tracker.ErrNotFound) {
			h.warn(c.Key, fmt.Errorf("carry out the command %s of %s: %w", c.Verb, c.By, err))
		}
	}
}

// warn reports a failure once, however often it repeats. Outages are reported elsewhere.
func (h *Handler) warn(key string, err error) {
	if publish.Unreachable(err) {
		return
	}
	h.Run.Log.Warn("command not carried out", "issue", key, "error", err)
	h.mu.Lock()
	known := h.lastFailure == err.Error()
	h.lastFailure = err.Error()
	h.mu.Unlock()
	if !known {
		h.Taker.Emit(journal.Event{Kind: journal.EventProblem, Key: key, Text: err.Error()})
	}
}

// obey carries out a command. The answer is nil while the command has to wait.
func (h *Handler) obey(ctx context.Context, commander tracker.Commander, c tracker.Command) (*tracker.Answer, error) {
	if !c.Verb.Known() {
		return tracker.Refuse("%s", report.Unknown(c.Verb)), nil
	}
	issue, err := h.Run.Tracker.Get(ctx, c.Key)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(h.Planner.Require[1:], func(l string) bool { return !issue.HasLabel(l) }) {
		return nil, nil // another pool's issue
	}
	claims, err := h.Taker.Claims(ctx)
	if err != nil {
		return nil, err
	}
	state := claims[c.Key]
	runs, err := journal.Runs(ctx, h.Run.Store, h.Run.Pool, c.Key)
	if err = cmp.Or(err, state.Err); err != nil {
		return nil, err
	}
	last, _ := runs.Last()
	switch t := tally.Newest(last, state.Record); c.Verb {
	case tracker.Explain:
		holder := ""
		if tally.Held(state) {
			holder = state.Holder.Host
		}
		return &tracker.Answer{Text: h.Explain(last, t, holder)}, nil
	case tracker.Stop:
		if !h.hasPickUpLabel(issue) && t.Run == "" && !tally.Held(state) {
			return tracker.Refuse("Ralph does not work on this issue."), nil
		}
		if t.Asked != nil && t.Asked.At.After(c.At) { // somebody has restarted the issue since
			return &tracker.Answer{}, nil
		}
		return h.stopRun(ctx, c, tally.Held(state))
	}
	return h.restart(ctx, commander, &restartOrder{Command: c, issue: issue, runs: runs})
}

// hasPickUpLabel reports whether the issue has the pick-up label.
func (h *Handler) hasPickUpLabel(issue tracker.Issue) bool {
	return issue.HasLabel(h.Planner.Require[0])
}

// stopRun hands an issue to a person. The label ends its run on any host.
func (h *Handler) stopRun(ctx context.Context, c tracker.Command, on bool) (*tracker.Answer, error) {
	label := h.Run.Labels.NeedsHuman
	if err := h.Run.Tracker.Change(ctx, c.Key, tracker.Change{AddLabels: []string{label}}); err != nil {
		return nil, err
	}
	h.Stop(c.Key, tracker.Unfit{Code: tracker.UnfitHandedOver, Detail: label})
	text := "No run is active. The issue is handed to a person"
	if on {
		text = "The run is being stopped; its work is kept, and the issue is handed to a person"
	}
	return &tracker.Answer{Text: text + " until somebody comments `/ralph retry`, or removes the label " + tracker.Code(label) + "."}, nil
}

// Requeue carries out a command, not given on the tracker, to work an issue again.
func (h *Handler) Requeue(ctx context.Context, c tracker.Command) error {
	issue, unread := h.Planner.ReadNamed(ctx, c.Key)
	runs, lost := journal.Runs(ctx, h.Run.Store, h.Run.Pool, c.Key)
	claims, err := h.Taker.Claims(ctx)
	if err := cmp.Or(unread, lost, err); err != nil {
		return err
	}
	commander, _ := tracker.As[tracker.Commander](h.Run.Tracker)
	o := &restartOrder{Command: c, issue: issue, runs: runs}
	var answer *tracker.Answer
	if !tally.Held(claims[c.Key]) || c.Verb == tracker.Fresh { // fresh ends a run that waits
		answer, err = h.restart(ctx, commander, o)
	}
	switch {
	case err != nil:
		return err
	case answer == nil:
		return fmt.Errorf("%w: a run is active, or its end has not been reported yet", worktree.ErrTaken)
	case answer.Refused:
		return errors.New(answer.Text)
	case c.Verb != tracker.Fix || commander == nil:
		return nil
	}
	if err := commander.Answer(ctx, o.Command, tracker.Answer{Text: report.Asked(o.Command, h.Run.Secrets)}); err != nil {
		return fmt.Errorf("the issue will be worked again, but the comment was not posted: %w", err)
	}
	return nil
}

// commandRunPrefix begins the run id of a claim that is held for a command only.
const commandRunPrefix = "command-"

// restartOrder is a command to work an issue again.
type restartOrder struct {
	tracker.Command
	issue  tracker.Issue
	runs   journal.History
	review tracker.FollowUp // the request that the command is about; Command.Request is its number
}

// restart frees the issue for the next run. It records the command in the claim before labels show it.
func (h *Handler) restart(ctx context.Context, commander tracker.Commander, o *restartOrder) (*tracker.Answer, error) {
	if !o.issue.Open {
		return tracker.Refuse("The issue is closed; reopen it first."), nil
	}
	if h.Run.Publish == journal.PublishRequest && o.Verb != tracker.Fresh && commander != nil {
		var err error
		if o.review, err = commander.Review(ctx, h.Planner.BranchPrefix+o.Key); err != nil {
			return nil, err
		}
		o.Request = o.review.Request.Number
	}
	if o.Verb == tracker.Fresh {
		if err := h.Taker.GiveUp(ctx, o.runs); err != nil {
			return nil, err
		}
	}
	rec := h.NewRecord(o.issue)
	rec.ID = commandRunPrefix + rec.ID
	claim, err := h.Taker.Take(ctx, rec)
	if taken, ok := errors.AsType[*worktree.TakenError](err); ok {
		waits := o.issue.HasLabel(h.Run.Labels.NeedsHuman) || o.issue.HasLabel(h.Run.Labels.NeedsInfo)
		if o.Verb == tracker.Retry && !waits && taken.Holder.PID != 0 && !strings.HasPrefix(taken.Holder.Run, commandRunPrefix) {
			return &tracker.Answer{}, nil // a run is in progress
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	answer, err := h.record(ctx, o, claim)
	after, cancel := halt.ForRelease(ctx)
	defer cancel()
	return answer, errors.Join(err, claim.Release(after))
}

// record writes the command into the claim's record, and frees the issue for the next run.
func (h *Handler) record(ctx context.Context, o *restartOrder, claim *worktree.Claim) (*tracker.Answer, error) {
	if claim.Record().Pending != nil {
		return nil, nil // the end of a run is still to be reported
	}
	last, _ := o.runs.Last()
	t := tally.Newest(last, claim.Record())
	request := o.review.Request.Number != 0
	// A label set by a command approves nothing, however often the command is repeated.
	labelled := !request && (!h.hasPickUpLabel(o.issue) || t.Asked != nil && t.Asked.Labelled)
	if !slices.Contains(t.Commands, o.ID) {
		if why := h.Planner.Refusal(o.Command, o.issue, tally.Approved(o.issue, o.runs, claim), o.review, labelled); why != nil {
			return why, nil
		}
		t = t.Restart(journal.Asked{ID: o.ID, By: o.By, At: o.At, Text: o.Text, Fresh: o.Verb == tracker.Fresh, Request: request, Labelled: labelled})
		if o.Verb != tracker.Fix {
			t.Asked.Text = ""
		}
		asks := tally.ToRecord(t)
		if o.Verb == tracker.Retry { // commits that have passed need no agent in another attempt either
			asks.Passed = claim.Record().Passed
		}
		if err := claim.SetRecord(ctx, asks); err != nil {
			return nil, err
		}
	}
	if t.Asked == nil || t.Asked.ID != o.ID { // a run has used it since
		return &tracker.Answer{}, nil
	}
	labels := h.Run.Labels
	change := tracker.Change{RemoveLabels: []string{labels.NeedsHuman, labels.NeedsInfo}}
	if !t.Asked.Request {
		change.RemoveLabels, change.AddLabels = append(change.RemoveLabels, labels.InReview), h.Planner.Require[:1]
	}
	if err := h.Run.Tracker.Change(ctx, o.Key, change); err != nil {
		return nil, err
	}
	return &tracker.Answer{}, nil
}
