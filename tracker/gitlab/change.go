package gitlab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// Change edits labels and state in one write, as a difference, so that concurrent changes by others remain.
func (t *Tracker) Change(ctx context.Context, key string, c tracker.Change) error {
	_, release, err := t.Begin(ctx)
	if err != nil {
		return err
	}
	defer release()
	i, err := t.getIssue(ctx, key)
	if err != nil {
		return err
	}
	remove := slices.DeleteFunc(slices.Clone(i.Labels), func(have string) bool {
		return len(tracker.MissingNames(c.RemoveLabels, []string{have})) > 0
	})
	var add []string
	for _, l := range c.AddLabels {
		if err := checkLabel(l); err != nil {
			return err
		}
	}
	for _, l := range tracker.MissingNames(i.Labels, c.AddLabels) {
		if l, err = t.spelling(ctx, l); err != nil {
			return err
		}
		add = append(add, l)
	}
	var body gl.UpdateIssueOptions
	if len(add) > 0 {
		body.AddLabels = (*gl.LabelOptions)(&add)
	}
	if len(remove) > 0 {
		body.RemoveLabels = (*gl.LabelOptions)(&remove)
	}
	want := i.State
	if c.Close && i.State == "opened" {
		want, body.StateEvent = "closed", gl.Ptr("close")
	} else if c.Reopen && i.State == "closed" {
		want, body.StateEvent = "opened", gl.Ptr("reopen")
	}
	if body == (gl.UpdateIssueOptions{}) {
		return nil
	}
	is, err := t.issue(ctx, http.MethodPut, i.IID, &body)
	if err != nil {
		return t.ExplainPart(ctx, key, err)
	}
	if body.StateEvent != nil && is.State != want {
		return &tracker.UnavailableError{Err: fmt.Errorf("%s #%s: GitLab accepted the change, but still reports the state %s",
			*body.StateEvent, key, is.State)}
	}
	kept := slices.ContainsFunc(remove, func(l string) bool { return slices.Contains(is.Labels, l) })
	if kept || len(tracker.MissingNames(is.Labels, add)) > 0 { // GitLab ignores label changes that a role may not make
		return &tracker.RefusedError{Err: fmt.Errorf("change the labels of #%s: GitLab ignored it; "+
			"give the token's account the role Reporter or higher in %s", key, t.project)}
	}
	return nil
}

// checkLabel rejects label names that GitLab does not support.
func checkLabel(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("set label: it has no name")
	case strings.Contains(name, ","):
		return fmt.Errorf("set label %q: GitLab's labels cannot contain commas", name)
	}
	return nil
}

// spelling returns the spelling of a label in the project or a group above it; name itself if there is no such label. GitLab's
// labels are case-sensitive, so another spelling would create a second label.
func (t *Tracker) spelling(ctx context.Context, name string) (string, error) {
	t.mu.Lock()
	known, ok := t.labels[strings.ToLower(name)]
	t.mu.Unlock()
	if ok {
		return known, nil
	}
	found, err := t.spellingsOf(ctx, name)
	if err != nil || len(found) == 0 {
		return name, err
	}
	spelt := found[0]
	if slices.Contains(found, name) {
		spelt = name
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.labels[strings.ToLower(name)] = spelt
	return spelt, nil
}

// spellingsOf returns the labels that equal name except for case.
func (t *Tracker) spellingsOf(ctx context.Context, name string) ([]string, error) {
	name = strings.TrimSpace(name)
	list, err := listAll(ctx, completeLabel, func(o ...gl.RequestOptionFunc) ([]*gl.Label, *gl.Response, error) {
		return t.api.Labels.ListLabels(t.project.Path, &gl.ListLabelsOptions{Search: &name}, o...)
	})
	var found []string
	for _, l := range list {
		if tracker.SameLabel(l.Name, name) && !slices.Contains(found, l.Name) { // a group may have the same label
			found = append(found, l.Name)
		}
	}
	return found, err
}

// CreateLabels creates the labels that do not exist.
func (t *Tracker) CreateLabels(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := checkLabel(name); err != nil {
			return err
		}
		name = strings.TrimSpace(name)
		found, err := t.spellingsOf(ctx, name)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			continue
		}
		_, err = getOne(ctx, completeLabel, func(o ...gl.RequestOptionFunc) (*gl.Label, *gl.Response, error) {
			opts := &gl.CreateLabelOptions{Name: &name, Color: gl.Ptr("#6699cc"), Description: gl.Ptr("used by ralph")}
			return t.api.Labels.CreateLabel(t.project.Path, opts, o...)
		})
		if err != nil && transport.Status(err) != http.StatusConflict { // created by somebody else meanwhile
			return fmt.Errorf("create label %q: %w", name, err)
		}
	}
	return nil
}
