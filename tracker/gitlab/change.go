package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

// Change edits labels and state in one write, by difference, so that what others change meanwhile stays.
func (t *Tracker) Change(ctx context.Context, key string, c tracker.Change) error {
	release, err := t.writing.lock(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	i, err := t.read(ctx, key)
	if err != nil {
		return err
	}
	var add, remove []string
	for _, l := range c.RemoveLabels {
		for _, have := range i.Labels {
			if tracker.SameLabel(have, l) && !slices.Contains(remove, have) {
				remove = append(remove, have)
			}
		}
	}
	for _, l := range c.AddLabels {
		if !hasAll(i.Labels, []string{l}) {
			add = append(add, l)
		}
	}
	if add, err = t.spellings(ctx, add); err != nil {
		return err
	}
	var body gl.UpdateIssueOptions
	if len(add) > 0 {
		body.AddLabels = (*gl.LabelOptions)(&add)
	}
	if len(remove) > 0 {
		body.RemoveLabels = (*gl.LabelOptions)(&remove)
	}
	if c.Close && i.State == "opened" {
		body.StateEvent = gl.Ptr("close")
	}
	if body == (gl.UpdateIssueOptions{}) {
		return nil
	}
	var is issue
	_, err = t.call(forge.Into(ctx, about(i.IID, &is)), http.MethodPut, t.project("/issues/%d", i.IID), nil, &body, nil)
	if err != nil {
		return t.below(ctx, key, err)
	}
	if body.StateEvent != nil && is.State != "closed" {
		return &tracker.UnavailableError{Err: fmt.Errorf("close #%s: GitLab took it, and says that it is %s", key, is.State)}
	}
	return t.checkChange(is, key, add, remove)
}

// checkChange looks whether the labels are what was asked for: GitLab ignores those that a role may not set.
func (t *Tracker) checkChange(is issue, key string, add, remove []string) error {
	if !hasAll(is.Labels, add) || slices.ContainsFunc(remove, func(l string) bool { return slices.Contains(is.Labels, l) }) {
		return &tracker.RefusedError{Err: fmt.Errorf("change the labels of #%s: GitLab ignored it; give the token's account the role Reporter or higher in %s", key, t.cfg.Project)}
	}
	return nil
}
