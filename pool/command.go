package pool

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/pool/halt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/tally"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// obeyAll obeys the commands that people have given on the tracker. A command takes effect and is then answered. A crash in between
// repeats it; the claim's record or the label shows that it has taken effect. With keys it is restricted to them. No failure
// ends a sweep.
func (w *Worker) obeyAll(ctx context.Context, keys []string) {
	commander, ok := tracker.As[tracker.Commander](w.c.Run.Tracker)
	if !ok || tracker.IsReadOnly(w.c.Run.Tracker) {
		return
	}
	list, err := commander.Commands(ctx, w.c.BranchPrefix)
	if err != nil {
		w.commandFailed("", fmt.Errorf("look for commands: %w", err))
	}
	waiting := map[string]bool{} // keys whose later commands have to wait
	for _, c := range list {
		if ctx.Err() != nil {
			return
		}
		if waiting[c.Key] || len(keys) > 0 && !slices.Contains(keys, c.Key) {
			continue
		}
		answer, err := w.obey(ctx, commander, c)
		if err == nil && answer != nil {
			err = commander.Answer(ctx, c, *answer)
			w.c.Run.Log.Info("command answered", "issue", c.Key, "command", c.Verb, "by", c.By, "refused", answer.Refused)
		}
		if waiting[c.Key] = answer == nil || err != nil; err != nil && !errors.Is(err, tracker.ErrNotFound) {
			w.commandFailed(c.Key, fmt.Errorf("carry out the command %s of %s: %w", c.Verb, c.By, err))
		}
	}
}

// commandFailed reports a failure once, however often it repeats. Outages are reported elsewhere.
func (w *Worker) commandFailed(key string, err error) {
	if publish.Unreachable(err) {
		return
	}
	w.c.Run.Log.Warn("command not carried out", "issue", key, "error", err)
	w.mu.Lock()
	known := w.failed == err.Error()
	w.failed = err.Error()
	w.mu.Unlock()
	if !known {
		w.emit(journal.Event{Kind: journal.EventProblem, Key: key, Text: err.Error()})
	}
}

// obey gives a command its effect. The answer is nil while it has to wait.
func (w *Worker) obey(ctx context.Context, commander tracker.Commander, c tracker.Command) (*tracker.Answer, error) {
	if !c.Verb.Known() {
		return tracker.Refuse("%s", report.Unknown(c.Verb)), nil
	}
	issue, err := w.c.Run.Tracker.Get(ctx, c.Key)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(w.c.Require[1:], func(l string) bool { return !issue.HasLabel(l) }) {
		return nil, nil // another pool's issue
	}
	claims, err := w.taker.Claims(ctx)
	if err != nil {
		return nil, err
	}
	state := claims[c.Key]
	runs, err := w.history(ctx, c.Key)
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
		return &tracker.Answer{Text: w.runner.Explain(last, t, holder)}, nil
	case tracker.Stop:
		if !w.works(issue) && t.Run == "" && !tally.Held(state) {
			return tracker.Refuse("Ralph does not work on this issue."), nil
		}
		if t.Asked != nil && t.Asked.At.After(c.At) { // somebody has started it again since
			return &tracker.Answer{}, nil
		}
		return w.stopRun(ctx, c, tally.Held(state))
	}
	return w.restart(ctx, commander, &c, issue, runs)
}

// works reports that the issue has the pick-up label.
func (w *Worker) works(issue tracker.Issue) bool { return issue.HasLabel(w.c.Require[0]) }

// stopRun hands an issue to a person. The label ends its run on any host.
func (w *Worker) stopRun(ctx context.Context, c tracker.Command, on bool) (*tracker.Answer, error) {
	label := w.c.Run.Labels.NeedsHuman
	if err := w.c.Run.Tracker.Change(ctx, c.Key, tracker.Change{AddLabels: []string{label}}); err != nil {
		return nil, err
	}
	w.mu.Lock()
	for _, r := range w.running[c.Key] {
		r.stop(halt.Superseded(tracker.Unfit{Code: tracker.UnfitHandedOver, Detail: label}))
	}
	w.mu.Unlock()
	text := "No run is on. The issue is left to a person"
	if on {
		text = "The run is being stopped; its work is kept, and the issue is left to a person"
	}
	return &tracker.Answer{Text: text + " until somebody comments `/ralph retry`, or removes the label " + tracker.Code(label) + "."}, nil
}

// Requeue makes the next sweep work an issue again, as a forge's command with this verb does; counts and waiting times start
// anew. Retry continues from the commits so far. Fix does too, with text as feedback for the agent; a forge shows the text on the
// request, or else on the issue. Fresh starts from the base. by is who asks.
func (w *Worker) Requeue(ctx context.Context, key, by string, verb tracker.Verb, text string) error {
	if verb != tracker.Retry && verb != tracker.Fix && verb != tracker.Fresh {
		return fmt.Errorf("%q cannot requeue an issue", verb)
	}
	c := tracker.Command{ID: rand.Text(), Key: key, Verb: verb, Text: text, By: by, At: time.Now(), Elsewhere: true}
	_, err := until(ctx, w, func(ctx context.Context) (any, error) { return nil, w.requeue(ctx, c) })
	return err
}

func (w *Worker) requeue(ctx context.Context, c tracker.Command) error {
	issue, unread := w.named(ctx, c.Key)
	runs, lost := w.history(ctx, c.Key)
	claims, err := w.taker.Claims(ctx)
	if err := cmp.Or(unread, lost, err); err != nil {
		return err
	}
	commander, _ := tracker.As[tracker.Commander](w.c.Run.Tracker)
	var answer *tracker.Answer
	if !tally.Held(claims[c.Key]) {
		answer, err = w.restart(ctx, commander, &c, issue, runs)
	}
	switch {
	case err != nil:
		return err
	case answer == nil:
		return fmt.Errorf("%w: a run is on, or its end is still to be reported", worktree.ErrTaken)
	case answer.Refused:
		return errors.New(answer.Text)
	case c.Verb != tracker.Fix || commander == nil:
		return nil
	}
	if err := commander.Answer(ctx, c, tracker.Answer{Text: report.Asked(c, w.c.Run.Secrets)}); err != nil {
		return fmt.Errorf("the issue is worked again, but the comment is not on its page: %w", err)
	}
	return nil
}

// commandRun is the prefix of a claim's run if the claim is held for a command only.
const commandRun = "command-"

// restart frees the issue for the next run. The claim's record has the command before labels show it. c.Request is set to the
// request that the command is about.
func (w *Worker) restart(ctx context.Context, commander tracker.Commander, c *tracker.Command, issue tracker.Issue, runs journal.History) (*tracker.Answer, error) {
	if !issue.Open {
		return tracker.Refuse("The issue is closed; reopen it first."), nil
	}
	var review tracker.FollowUp
	if w.c.Run.Publish == journal.PublishRequest && c.Verb != tracker.Fresh && commander != nil {
		var err error
		if review, err = commander.Review(ctx, w.c.BranchPrefix+c.Key); err != nil {
			return nil, err
		}
		c.Request = review.Request.Number
	}
	began := w.newRecord(issue)
	began.ID = commandRun + began.ID
	claim, err := w.taker.Take(ctx, began)
	if taken, ok := errors.AsType[*worktree.TakenError](err); ok {
		waits := issue.HasLabel(w.c.Run.Labels.NeedsHuman) || issue.HasLabel(w.c.Run.Labels.NeedsInfo)
		if c.Verb == tracker.Retry && !waits && taken.Holder.PID != 0 && !strings.HasPrefix(taken.Holder.Run, commandRun) {
			return &tracker.Answer{}, nil // a run is on
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	answer, err := w.record(ctx, *c, issue, runs, claim, review)
	after, cancel := workspace.Outlasting(ctx)
	defer cancel()
	return answer, errors.Join(err, claim.Release(after))
}

// record writes the command into the claim's record, and frees the issue for the next run.
func (w *Worker) record(ctx context.Context, c tracker.Command, issue tracker.Issue, runs journal.History, claim *worktree.Claim, review tracker.FollowUp) (*tracker.Answer, error) {
	if claim.Record().Pending != nil {
		return nil, nil // the end of a run is still to be reported
	}
	last, _ := runs.Last()
	t := tally.Newest(last, claim.Record())
	request := review.Request.Number != 0
	// A label set by a command approves nothing, however often the command is repeated.
	labelled := !request && (!w.works(issue) || t.Asked != nil && t.Asked.Labelled)
	if !slices.Contains(t.Commands, c.ID) {
		if why := w.planner.Refusal(c, issue, tally.Approved(issue, runs, claim), review, labelled); why != nil {
			return why, nil
		}
		t = t.Restart(journal.Asked{ID: c.ID, By: c.By, At: c.At, Text: c.Text, Fresh: c.Verb == tracker.Fresh, Request: request, Labelled: labelled})
		if c.Verb != tracker.Fix {
			t.Asked.Text = ""
		}
		asks := tally.Record(t)
		if c.Verb == tracker.Retry { // what has passed needs no agent in another attempt either
			asks.Passed = claim.Record().Passed
		}
		if err := claim.SetRecord(ctx, asks); err != nil {
			return nil, err
		}
	}
	if t.Asked == nil || t.Asked.ID != c.ID { // a run has used it since
		return &tracker.Answer{}, nil
	}
	labels := w.c.Run.Labels
	change := tracker.Change{RemoveLabels: []string{labels.NeedsHuman, labels.NeedsInfo}}
	if !t.Asked.Request {
		change.RemoveLabels, change.AddLabels = append(change.RemoveLabels, labels.InReview), w.c.Require[:1]
	}
	if err := w.c.Run.Tracker.Change(ctx, c.Key, change); err != nil {
		return nil, err
	}
	return &tracker.Answer{}, nil
}
