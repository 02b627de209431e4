package github

import (
	"context"
	"fmt"
	"net/url"
	"strings"
)

// takenBy says for each issue that an open pull request of a person closes, which one. Bots and ralph itself do not
// take issues.
func (t *Tracker) takenBy(ctx context.Context) (map[int]string, error) {
	pulls, err := t.openPulls(ctx)
	if err != nil || len(pulls) == 0 {
		return nil, err
	}
	taken := map[int]string{}
	for _, p := range pulls {
		if p.User == nil || p.User.Type == "Bot" {
			continue
		}
		closed := closedBy(p.Title+"\n"+p.Body, t.cfg.Project.Host, t.cfg.Project.String())
		if len(closed) == 0 {
			continue
		}
		// Ralph may run with a person's own token; then its branches tell what is its own.
		me, err := t.identity(ctx)
		if err != nil {
			return nil, err
		}
		if p.User.ID == me.ID && strings.HasPrefix(p.Head.Ref, t.cfg.BranchPrefix) {
			continue
		}
		for _, r := range closed {
			if r.project == "" && taken[r.number] == "" {
				taken[r.number] = fmt.Sprintf("pull request #%d of %s closes it", p.Number, p.User.Login)
			}
		}
	}
	return taken, nil
}

func (t *Tracker) openPulls(ctx context.Context) ([]pull, error) {
	return pages[pull](ctx, t, t.repo("/pulls"), url.Values{"state": {"open"}, "sort": {"created"}, "direction": {"asc"}})
}
