package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
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
	state := map[string]string{"state": "closed", "state_reason": "completed"}
	if _, err := t.call(forge.Repeatable(ctx), http.MethodPatch, t.repo("/issues/%d", i.Number), state, nil); err != nil {
		return fmt.Errorf("close #%s: %w", key, err)
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

func (t *Tracker) addLabels(ctx context.Context, number int, names []string) error {
	if len(names) == 0 {
		return nil
	}
	body := map[string][]string{"labels": names}
	_, err := t.call(forge.Repeatable(ctx), http.MethodPost, t.repo("/issues/%d/labels", number), body, nil)
	return err
}

func (t *Tracker) removeLabel(ctx context.Context, number int, name string) error {
	_, err := t.call(ctx, http.MethodDelete, t.repo("/issues/%d/labels/%s", number, url.PathEscape(name)), nil, nil)
	if forge.Status(err) == http.StatusNotFound {
		return nil // it is gone already
	}
	return err
}
