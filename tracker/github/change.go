package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/github/internal/api"
)

// Change edits labels and state, and writes only the differences.
func (t *Tracker) Change(ctx context.Context, key string, c tracker.Change) error {
	_, release, err := t.Begin(ctx)
	if err != nil {
		return err
	}
	defer release()
	i, err := t.issue(ctx, key)
	if err != nil {
		return err
	}
	now := i.labels()
	if err := t.addLabels(ctx, i.GetNumber(), tracker.MissingNames(now, c.AddLabels)); err != nil {
		return fmt.Errorf("add labels to #%s: %w", key, t.ExplainPart(ctx, key, err))
	}
	for _, l := range now {
		if len(tracker.MissingNames(c.RemoveLabels, []string{l})) > 0 {
			continue
		}
		if err := t.removeLabel(ctx, i.GetNumber(), l); err != nil {
			return fmt.Errorf("remove label %s from #%s: %w", l, key, t.ExplainPart(ctx, key, err))
		}
	}
	edit := &gh.IssueRequest{State: gh.String("closed"), StateReason: gh.String("completed")}
	switch {
	case c.Close && i.GetState() == "open":
	case c.Reopen && i.GetState() == "closed":
		edit = &gh.IssueRequest{State: gh.String("open"), StateReason: gh.String("reopened")}
	default:
		return nil
	}
	_, err = api.One(transport.WithIdempotent(ctx), func(i *gh.Issue) bool { return i.GetState() == edit.GetState() },
		func(ctx context.Context) (*gh.Issue, *gh.Response, error) {
			return t.api.Issues.Edit(ctx, t.project.Owner, t.project.Name, i.GetNumber(), edit)
		})
	if err != nil {
		return fmt.Errorf("make #%s %s: %w", key, edit.GetState(), t.ExplainPart(ctx, key, err))
	}
	return nil
}

// hasLabels reports whether a list of labels is complete and has all names.
func hasLabels(labels []*gh.Label, names []string) bool {
	return transport.Complete(labels, completeLabel) && len(tracker.MissingNames(namesOf(labels), names)) == 0
}

// addLabels succeeds only if the answer lists the labels.
func (t *Tracker) addLabels(ctx context.Context, number int, names []string) error {
	if len(names) == 0 {
		return nil
	}
	ctx = transport.Expect(transport.WithIdempotent(ctx), func(now *[]*gh.Label) bool { return hasLabels(*now, names) })
	body := map[string][]string{"labels": names} // go-github sends a bare list, which GitHub does not document
	resp, err := t.do(ctx, http.MethodPost, t.path("/issues/%d/labels", number), body, nil)
	return api.Explain(ctx, resp, err)
}

// removeLabel succeeds only if the label is missing in the answer's list, or in the issue's: the answer "not found" may also refer
// to the issue.
func (t *Tracker) removeLabel(ctx context.Context, number int, name string) error {
	answer := transport.Expect(ctx, func(now *[]*gh.Label) bool {
		return transport.Complete(*now, completeLabel) && !hasLabels(*now, []string{name})
	})
	resp, err := t.api.Issues.RemoveLabelForIssue(answer, t.project.Owner, t.project.Name, number, url.PathEscape(name))
	err = api.Explain(ctx, resp, err)
	if err == nil || !transport.Missing(err) && !transport.Uncertain(err) {
		return err
	}
	i, look := t.issue(transport.WithoutCache(ctx), strconv.Itoa(number))
	switch {
	case look != nil:
		return look
	case len(tracker.MissingNames(i.labels(), []string{name})) > 0:
		return nil
	}
	return err
}

func namesOf(labels []*gh.Label) []string {
	names := make([]string, 0, len(labels))
	for _, l := range labels {
		names = append(names, l.GetName())
	}
	return names
}
