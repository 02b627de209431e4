package github

import (
	"context"
	"errors"
	"fmt"
	"strings"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/github/api"
)

// MergeLater implements tracker.AutoMerger, by auto-merge or the base's merge queue.
func (t *Tracker) MergeLater(ctx context.Context, head, commit string) (refused string, err error) {
	p, m, err := t.merging(ctx, head)
	switch {
	case err != nil:
		return "", err
	case p == nil:
		return "no request of ralph's is open for it", nil
	case m.Pull.Head != commit:
		return "the request's head is not what has been checked", nil
	}
	if why := notMerged(m); why != "" {
		return why, t.graph.Keep(forge.Repeatable(ctx), m)
	}
	if m.Pull.Auto != nil || m.Pull.Entry != nil {
		return "", nil
	}
	if !m.Allowed && m.Pull.Queue == nil {
		return fmt.Sprintf(`auto-merge is off in %s: turn on "Allow auto-merge" in the repository's settings`, t.project), nil
	}
	err = t.graph.Automate(forge.Repeatable(ctx), m, commit)
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "clean status") { // all has passed already
		if m.Pull.Queue == nil {
			return fmt.Sprintf("GitHub has nothing to wait for: make a check required on %s, by a ruleset or branch protection", m.Pull.Base), nil
		}
		err = t.graph.Enqueue(forge.Repeatable(ctx), m, commit)
	}
	if _, away := errors.AsType[*tracker.UnavailableError](err); err == nil || away {
		return "", err
	}
	return fmt.Sprintf("%s; it needs required checks on %s, and a token that may write contents and pull requests", forge.Line(err.Error(), 300), m.Pull.Base), nil
}

// notMerged says why a request must not be merged by itself; empty: it may.
func notMerged(m *api.Merging) string {
	switch {
	case m.Pull.Draft:
		return "it is a draft"
	case m.Pull.Decision == "CHANGES_REQUESTED":
		return "a review requests changes"
	}
	for _, thread := range m.Pull.Threads.Nodes {
		if !thread.Resolved {
			return "a review comment is not resolved"
		}
	}
	return ""
}

// KeepOpen implements tracker.AutoMerger.
func (t *Tracker) KeepOpen(ctx context.Context, head string) error {
	p, m, err := t.merging(ctx, head)
	if err != nil || p == nil {
		return err
	}
	return t.graph.Keep(forge.Repeatable(ctx), m)
}

// merging finds ralph's own open pull request of a branch; nil when there is none.
func (t *Tracker) merging(ctx context.Context, head string) (*gh.PullRequest, *api.Merging, error) {
	me, err := t.identity(ctx)
	if err != nil {
		return nil, nil, err
	}
	p, err := t.pullOf(ctx, head)
	if err != nil || p == nil || account(p.User).ID != me.ID {
		return nil, nil, err
	}
	m, err := t.graph.Merging(forge.Reading(ctx), t.project.Owner, t.project.Name, p.GetNumber())
	return p, m, err
}
