package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

const (
	draftTitle = "Draft: " // marks a draft where the project's plan has none
	maxTitle   = 240       // bytes; GitHub takes 256 characters, and a mark may come before
)

// OpenRequest opens a pull request for the head branch, or updates the open one. Of one that a person opened from
// ralph's branch it changes nothing. Reviewers whom GitHub does not take are logged, since the work is published
// without them.
func (t *Tracker) OpenRequest(ctx context.Context, r tracker.Request) (tracker.RequestRef, error) {
	unlock, err := t.writing.lock(ctx, "head "+r.Head)
	if err != nil {
		return tracker.RequestRef{}, err
	}
	defer unlock()
	r.Title = titleOf(r)
	me, err := t.identity(ctx)
	if err != nil {
		return tracker.RequestRef{}, err
	}
	p, found, err := t.pullOf(ctx, r.Head)
	if err == nil && !found {
		p, err = t.createPull(ctx, r)
	}
	if err != nil {
		return tracker.RequestRef{}, fmt.Errorf("open a pull request for %s: %w", r.Head, err)
	}
	if p.User == nil || p.User.ID != me.ID {
		t.cfg.Log.Warn().Int("pull", p.Number).Str("author", p.User.login()).Msg("leave another's pull request as it is")
		return refOf(p), nil
	}
	if err := t.updatePull(ctx, &p, r); err != nil {
		return tracker.RequestRef{}, fmt.Errorf("update pull request #%d: %w", p.Number, err)
	}
	return refOf(p), nil
}

// titleOf is one line, which GitHub wants to have something in it.
func titleOf(r tracker.Request) string { return cmp.Or(clip(r.Title, maxTitle), r.Head) }

func refOf(p pull) tracker.RequestRef {
	return tracker.RequestRef{Number: p.Number, URL: p.HTMLURL, Draft: p.Draft || strings.HasPrefix(p.Title, draftTitle)}
}

// pullOf finds the open pull request of a branch of this project.
func (t *Tracker) pullOf(ctx context.Context, head string) (pull, bool, error) {
	query := url.Values{"state": {"open"}, "head": {t.cfg.Project.Owner + ":" + head}}
	some, err := pages[pull](ctx, t, t.repo("/pulls"), query)
	if err != nil {
		return pull{}, false, err
	}
	for _, p := range some { // a fork of the same owner may have a branch of the same name
		if p.Head.Ref == head && t.ownRepo(p) {
			return p, true, nil
		}
	}
	return pull{}, false, nil
}

// ownRepo reports whether the commits are in the project itself, not in a fork.
func (t *Tracker) ownRepo(p pull) bool {
	return p.Head.Repo != nil && strings.EqualFold(p.Head.Repo.FullName, t.cfg.Project.String())
}

// createPull makes it. GitHub has at most one open pull request for two branches, so that trying again is safe: it finds
// the first.
func (t *Tracker) createPull(ctx context.Context, r tracker.Request) (pull, error) {
	body := map[string]any{"title": r.Title, "head": r.Head, "base": r.Base, "body": fit(r.Body, maxComment), "draft": r.Draft}
	var p pull
	post := func() error {
		into := forge.Into(forge.Repeatable(ctx), func(answer []byte) error {
			if err := forge.Decode(answer, &p); err != nil {
				return err
			}
			if p.Head.Ref != r.Head {
				return fmt.Errorf("it is about #%d", p.Number)
			}
			return nil
		})
		_, err := t.call(into, http.MethodPost, t.repo("/pulls"), body, nil)
		return err
	}
	err := post()
	if r.Draft && forge.Status(err) == http.StatusUnprocessableEntity && strings.Contains(strings.ToLower(err.Error()), "draft") {
		body["draft"], body["title"] = false, draftTitle+r.Title
		err = post()
	}
	if err == nil {
		return p, nil
	}
	if forge.Status(err) == http.StatusUnprocessableEntity || forge.Uncertain(err) {
		if p, found, again := t.pullOf(ctx, r.Head); again == nil && found {
			return p, nil
		}
	}
	return pull{}, err
}

// updatePull changes what differs.
func (t *Tracker) updatePull(ctx context.Context, p *pull, r tracker.Request) error {
	if p.Draft != r.Draft && !(r.Draft && strings.HasPrefix(p.Title, draftTitle)) {
		if err := t.setDraft(ctx, p, r.Draft); err != nil {
			return err
		}
	}
	title, body := r.Title, fit(r.Body, maxComment)
	if r.Draft && !p.Draft {
		title = draftTitle + title
	}
	change := map[string]string{}
	if p.Title != title {
		change["title"] = title
	}
	if p.Body != body {
		change["body"] = body
	}
	if p.Base.Ref != r.Base {
		change["base"] = r.Base
	}
	if len(change) > 0 {
		if _, err := t.call(forge.Repeatable(ctx), http.MethodPatch, t.repo("/pulls/%d", p.Number), change, p); err != nil {
			return err
		}
	}
	if err := t.addLabels(ctx, p.Number, missing(namesOf(p.Labels), r.Labels)); err != nil {
		return err
	}
	return t.involve(ctx, *p, r)
}

// setDraft turns a draft into a request and back; where drafts do not exist, the title will have to say it.
func (t *Tracker) setDraft(ctx context.Context, p *pull, draft bool) error {
	mutation := readyMutation
	if draft {
		mutation = draftMutation
	}
	err := t.query(forge.Repeatable(ctx), mutation, map[string]any{"id": p.NodeID}, new(drafted))
	if err != nil && draft && isSkip(err) {
		return nil
	}
	if err == nil {
		p.Draft = draft
	}
	return err
}

// involve asks for reviews and assigns, where that has not been done.
func (t *Tracker) involve(ctx context.Context, p pull, r tracker.Request) error {
	var have []string
	for _, u := range p.Assignees {
		have = append(have, u.Login)
	}
	if names := missing(have, r.Assignees); len(names) > 0 {
		body := map[string][]string{"assignees": names}
		if _, err := t.call(forge.Repeatable(ctx), http.MethodPost, t.repo("/issues/%d/assignees", p.Number), body, new(issue)); err != nil {
			return err
		}
	}
	have = nil
	for _, u := range p.RequestedReviewers {
		have = append(have, u.Login)
	}
	for _, g := range p.RequestedTeams {
		have = append(have, t.cfg.Project.Owner+"/"+g.Slug)
	}
	// One by one: GitHub takes all or none of a list, and asking again somebody who has reviewed is no harm.
	for _, name := range missing(have, r.Reviewers) {
		body := map[string][]string{"reviewers": {name}}
		if _, slug, isTeam := strings.Cut(name, "/"); isTeam {
			body = map[string][]string{"team_reviewers": {slug}}
		}
		_, err := t.call(forge.Repeatable(ctx), http.MethodPost, t.repo("/pulls/%d/requested_reviewers", p.Number), body, new(pull))
		if isSkip(err) {
			t.cfg.Log.Warn().Err(err).Int("pull", p.Number).Str("reviewer", name).Msg("ask for a review")
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}
