package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/github/internal/api"
)

// requiredCheck is a check that the base branch requires; app 0 means any app.
type requiredCheck struct {
	name string
	app  int64
}

// failedChecks finds required checks that have failed. If the base requires none, every check counts. As long as one of them is
// running, there is no reason yet: others may also fail, and one run should fix them all.
func (t *Tracker) failedChecks(ctx context.Context, p *gh.PullRequest, required requiredByBase) (forge.Cause, error) {
	want, err := required(ctx, p.GetBase().GetRef())
	if err != nil {
		return forge.Cause{}, err
	}
	isRequired := func(name string, app int64) bool {
		for _, r := range want {
			if r.name == name && (r.app == 0 || app == 0 || r.app == app) {
				return true
			}
		}
		return len(want) == 0
	}
	runs, err := t.checkRuns(ctx, p.GetHead().GetSHA())
	if err != nil {
		return forge.Cause{}, err
	}
	statuses, err := t.statuses(ctx, p.GetHead().GetSHA())
	if err != nil {
		return forge.Cause{}, err
	}
	out := forge.Cause{Why: tracker.ChecksFailed}
	for _, c := range runs {
		if !isRequired(c.GetName(), c.GetApp().GetID()) {
			continue
		}
		if c.GetStatus() != "completed" {
			return forge.Cause{}, nil
		}
		switch c.GetConclusion() {
		case "failure", "timed_out", "startup_failure":
			text, err := t.runText(ctx, c)
			if err != nil {
				return forge.Cause{}, err
			}
			out.Text += text
			out.At = forge.Later(out.At, c.GetCompletedAt().Time)
		}
	}
	for _, s := range statuses {
		if !isRequired(s.GetContext(), 0) {
			continue
		}
		switch s.GetState() {
		case "pending":
			return forge.Cause{}, nil
		case "failure", "error":
			out.Text += fmt.Sprintf("The check %q has failed: %s\n%s\n", s.GetContext(), tracker.Line(s.GetDescription(), forge.MaxPart),
				tracker.Line(s.GetTargetURL(), 500))
			out.At = forge.Later(out.At, s.GetUpdatedAt().Time)
		}
	}
	return out, nil
}

// checkRuns returns the latest runs on a commit.
func (t *Tracker) checkRuns(ctx context.Context, sha string) ([]*gh.CheckRun, error) {
	complete := func(c *gh.CheckRun) bool { return c.GetID() > 0 && c.GetName() != "" && c.GetStatus() != "" }
	return api.All(ctx, complete, func(ctx context.Context, p gh.ListOptions) ([]*gh.CheckRun, *gh.Response, error) {
		ctx = transport.Expect(ctx, func(r *gh.ListCheckRunsResults) bool { return transport.Complete(r.CheckRuns, complete) })
		opts := &gh.ListCheckRunsOptions{Filter: gh.String("latest"), ListOptions: p}
		r, resp, err := t.api.Checks.ListCheckRunsForRef(ctx, t.project.Owner, t.project.Name, sha, opts)
		if err != nil {
			return nil, resp, err
		}
		return r.CheckRuns, resp, nil
	})
}

// statuses returns the latest statuses on a commit, one per context. They are the predecessors of check runs.
func (t *Tracker) statuses(ctx context.Context, sha string) ([]*gh.RepoStatus, error) {
	complete := func(s *gh.RepoStatus) bool { return s.GetContext() != "" && s.GetState() != "" }
	return api.All(ctx, complete, func(ctx context.Context, p gh.ListOptions) ([]*gh.RepoStatus, *gh.Response, error) {
		ctx = transport.Expect(ctx, func(s *gh.CombinedStatus) bool { return transport.Complete(s.Statuses, complete) })
		s, resp, err := t.api.Repositories.GetCombinedStatus(ctx, t.project.Owner, t.project.Name, sha, &p)
		if err != nil {
			return nil, resp, err
		}
		return s.Statuses, resp, nil
	})
}

// rule is a rule of a branch's rulesets. go-github v62 reads only one page of them and fails on unknown kinds.
type rule struct {
	Type       string `json:"type"`
	Parameters struct {
		Checks []struct {
			Context string `json:"context"`
			App     int64  `json:"integration_id"`
		} `json:"required_status_checks"`
	} `json:"parameters"`
}

// requiredByBase returns the checks that a base branch requires.
type requiredByBase func(ctx context.Context, base string) ([]requiredCheck, error)

// cachedRequiredChecks returns a function that reads the rules of each branch only once: most requests have the same base.
func (t *Tracker) cachedRequiredChecks() requiredByBase {
	var mu sync.Mutex
	asked := map[string]func() ([]requiredCheck, error){}
	return func(ctx context.Context, base string) ([]requiredCheck, error) {
		mu.Lock()
		ask := asked[base]
		if ask == nil {
			ask = sync.OnceValues(func() ([]requiredCheck, error) { return t.requiredChecks(ctx, base) })
			asked[base] = ask
		}
		mu.Unlock()
		return ask()
	}
}

// requiredChecks reads them from rulesets and branch protection. Neither needs administrator permission.
func (t *Tracker) requiredChecks(ctx context.Context, base string) (want []requiredCheck, err error) {
	var rules []*rule
	err = t.Stack.RetryNotFound(ctx, func(ctx context.Context) (err error) {
		complete := func(r *rule) bool { return r.Type != "" }
		rules, err = api.All(ctx, complete, func(ctx context.Context, p gh.ListOptions) (some []*rule, resp *gh.Response, err error) {
			path := t.path("/rules/branches/%s?per_page=%d&page=%d", url.PathEscape(base), p.PerPage, p.Page)
			resp, err = t.do(ctx, http.MethodGet, path, nil, &some)
			return some, resp, err
		})
		return err
	})
	if err != nil && transport.Status(err) != http.StatusNotFound {
		return nil, err
	}
	for _, r := range rules {
		if r.Type == "required_status_checks" {
			for _, c := range r.Parameters.Checks {
				want = append(want, requiredCheck{c.Context, c.App})
			}
		}
	}
	branch := new(gh.Branch)
	err = t.Stack.RetryNotFound(ctx, func(ctx context.Context) error {
		ctx = transport.Expect(ctx, func(b *gh.Branch) bool { return b.GetName() != "" })
		resp, err := t.do(ctx, http.MethodGet, t.path("/branches/%s", url.PathEscape(base)), nil, branch) // GetBranch hides refusals
		return api.Explain(ctx, resp, err)
	})
	if err != nil && transport.Status(err) != http.StatusNotFound {
		return nil, err
	}
	if checks := branch.GetProtection().GetRequiredStatusChecks(); checks != nil && checks.Contexts != nil {
		for _, name := range *checks.Contexts {
			want = append(want, requiredCheck{name: name})
		}
	}
	return want, nil
}

// runText returns a failed run's own summary, and for GitHub Actions the end of its log.
func (t *Tracker) runText(ctx context.Context, c *gh.CheckRun) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "The check %q has failed (%s).\n%s\n", c.GetName(), c.GetConclusion(), tracker.Line(c.GetDetailsURL(), 500))
	out := c.GetOutput()
	for _, part := range []string{out.GetTitle(), out.GetSummary(), out.GetText()} {
		if part = strings.TrimSpace(part); part != "" {
			b.WriteString(tracker.Cut(part, forge.MaxPart) + "\n")
		}
	}
	if c.GetApp().GetSlug() != "github-actions" {
		return b.String(), nil
	}
	log, err := t.jobLog(ctx, c.GetID())
	if log != "" {
		b.WriteString("The end of its log:\n" + log + "\n")
	}
	return b.String(), err
}

// jobLog returns the end of a job's log. The API redirects to another host, which gets no token. A log that is deleted or
// unreadable does not prevent the rest of the feedback; a token that the API refuses does.
func (t *Tracker) jobLog(ctx context.Context, job int64) (string, error) {
	var b strings.Builder
	path := t.path("/actions/jobs/%d/logs", job)
	resp, err := t.do(transport.LastBytes(ctx, forge.MaxPart), http.MethodGet, path, nil, &b)
	if err = api.Explain(ctx, resp, err); err == nil {
		return strings.ToValidUTF8(b.String(), ""), nil
	}
	var f *transport.Failure
	if ctx.Err() != nil || errors.As(err, &f) && f.Status == http.StatusUnauthorized && strings.HasSuffix(f.Path, path) {
		return "", err
	}
	t.Settings.Log.Warn("read the log of a failed check", "error", err, "job", job)
	return "", nil
}
