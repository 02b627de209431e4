package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

// Change edits labels and state, and touches nothing that already is so.
func (t *Tracker) Change(ctx context.Context, key string, c tracker.Change) error {
	unlock, err := t.writing.lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	i, err := t.read(ctx, key)
	if err != nil {
		return err
	}
	now := t.convert(i)
	if err := t.addLabels(ctx, i.Number, missing(now.Labels, c.AddLabels)); err != nil {
		return fmt.Errorf("add labels to #%s: %w", key, err)
	}
	for _, l := range now.Labels {
		if len(missing(c.RemoveLabels, []string{l})) > 0 {
			continue
		}
		if err := t.removeLabel(ctx, i.Number, l); err != nil {
			return fmt.Errorf("remove label %s from #%s: %w", l, key, err)
		}
	}
	if !c.Close || !now.Open {
		return nil
	}
	return t.close(ctx, i.Number)
}

func (t *Tracker) close(ctx context.Context, number int) error {
	var now issue
	state := map[string]string{"state": "closed", "state_reason": "completed"}
	ctx = forge.Into(forge.Repeatable(ctx), func(answer []byte) error {
		if err := forge.Decode(answer, &now); err != nil {
			return err
		}
		if now.State != "closed" {
			return errors.New("it is " + now.State)
		}
		return nil
	})
	if _, err := t.call(ctx, http.MethodPatch, t.repo("/issues/%d", number), state, nil); err != nil {
		return fmt.Errorf("close #%d: %w", number, err)
	}
	return nil
}

// missing are the wanted labels that are not there, each once.
func missing(have, want []string) []string {
	var out []string
	for _, w := range want {
		w = strings.TrimSpace(w)
		there := w == ""
		for _, list := range [][]string{have, out} {
			for _, h := range list {
				there = there || tracker.SameLabel(h, w)
			}
		}
		if !there {
			out = append(out, w)
		}
	}
	return out
}

// addLabels believes that the labels are there only when the answer lists them.
func (t *Tracker) addLabels(ctx context.Context, number int, names []string) error {
	if len(names) == 0 {
		return nil
	}
	var now forge.List[label]
	body := map[string][]string{"labels": names}
	ctx = forge.Into(forge.Repeatable(ctx), func(answer []byte) error {
		if err := forge.Decode(answer, &now); err != nil {
			return err
		}
		if left := missing(namesOf(now), names); len(left) > 0 {
			return fmt.Errorf("it lacks the label %s", left[0])
		}
		return nil
	})
	_, err := t.call(ctx, http.MethodPost, t.repo("/issues/%d/labels", number), body, nil)
	return err
}

// removeLabel believes that the label is gone only when a list of the labels says so: that of the answer, or of the
// issue. "There is no such label" may as well be said of the issue.
func (t *Tracker) removeLabel(ctx context.Context, number int, name string) error {
	var now forge.List[label]
	path := t.repo("/issues/%d/labels/%s", number, url.PathEscape(name))
	_, err := t.call(ctx, http.MethodDelete, path, nil, &now)
	if err == nil && len(missing(namesOf(now), []string{name})) > 0 {
		return nil
	}
	if err != nil && !forge.Missing(err) && !forge.Uncertain(err) {
		return err
	}
	i, look := t.read(forge.Fresh(ctx), strconv.Itoa(number))
	switch {
	case look != nil:
		return look
	case len(missing(namesOf(i.Labels), []string{name})) > 0:
		return nil
	case err == nil:
		return &tracker.UnavailableError{Err: errors.New("GitHub says that it is removed, and lists it still")}
	}
	return err
}

func namesOf(labels []label) []string {
	var out []string
	for _, l := range labels {
		out = append(out, l.Name)
	}
	return out
}
