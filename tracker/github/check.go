package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

// checkRun is what an app says about a commit.
type checkRun struct {
	ID          int64     `json:"id"`
	Name        string    `json:"name"`
	Status      string    `json:"status"`
	Conclusion  string    `json:"conclusion"`
	CompletedAt time.Time `json:"completed_at"`
	DetailsURL  string    `json:"details_url"`
	App         struct {
		ID   int64  `json:"id"`
		Slug string `json:"slug"`
	} `json:"app"`
	Output struct {
		Title   string `json:"title"`
		Summary string `json:"summary"`
		Text    string `json:"text"`
	} `json:"output"`
}

// Whole is of an entry of a list.
func (c checkRun) Whole() bool { return c.ID > 0 && c.Name != "" && c.Status != "" }

type checkRuns struct {
	Runs forge.List[checkRun] `json:"check_runs"`
}

// Whole wants the list, which may be empty.
func (c checkRuns) Whole() bool { return c.Runs.Whole() }

// commitStatus is the older way of saying it.
type commitStatus struct {
	Context     string    `json:"context"`
	State       string    `json:"state"`
	Description string    `json:"description"`
	TargetURL   string    `json:"target_url"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// Whole is of an entry of a list.
func (s commitStatus) Whole() bool { return s.Context != "" && s.State != "" }

type commitStatuses struct {
	Statuses forge.List[commitStatus] `json:"statuses"`
}

// Whole wants the list, which may be empty.
func (c commitStatuses) Whole() bool { return c.Statuses.Whole() }

// rule is one of a ruleset for a branch.
type rule struct {
	Type       string `json:"type"`
	Parameters struct {
		Checks []struct {
			Context string `json:"context"`
			App     int64  `json:"integration_id"`
		} `json:"required_status_checks"`
	} `json:"parameters"`
}

// Whole is of an entry of a list.
func (r rule) Whole() bool { return r.Type != "" }

// protected is a branch with what protects it.
type protected struct {
	Name       string `json:"name"`
	Protection struct {
		Checks struct {
			Contexts []string `json:"contexts"`
		} `json:"required_status_checks"`
	} `json:"protection"`
}

// Whole is of a branch that is asked for.
func (p protected) Whole() bool { return p.Name != "" }

// required is a check that the base branch asks for; app 0 is any.
type required struct {
	name string
	app  int64
}

// checks finds required checks that have failed. Where the base requires none, every check counts. While one that
// counts still runs there is no reason yet: the others may fail too, and one run should mend them all.
func (t *Tracker) checks(ctx context.Context, p pull) (reason, bool, error) {
	want, err := t.requiredChecks(ctx, p.Base.Ref)
	if err != nil {
		return reason{}, false, err
	}
	counts := func(name string, app int64) bool {
		for _, r := range want {
			if r.name == name && (r.app == 0 || app == 0 || r.app == app) {
				return true
			}
		}
		return len(want) == 0
	}
	runs, err := t.checkRuns(ctx, p.Head.SHA)
	if err != nil {
		return reason{}, false, err
	}
	statuses, err := t.statuses(ctx, p.Head.SHA)
	if err != nil {
		return reason{}, false, err
	}
	out := reason{why: tracker.ChecksFailed}
	var b strings.Builder
	for _, c := range runs {
		if !counts(c.Name, c.App.ID) {
			continue
		}
		if c.Status != "completed" {
			return reason{}, false, nil
		}
		switch c.Conclusion {
		case "failure", "timed_out", "startup_failure":
			text, err := t.runText(ctx, c)
			if err != nil {
				return reason{}, false, err
			}
			b.WriteString(text)
			out.at = later(out.at, c.CompletedAt)
		}
	}
	for _, s := range statuses {
		if !counts(s.Context, 0) {
			continue
		}
		switch s.State {
		case "pending":
			return reason{}, false, nil
		case "failure", "error":
			fmt.Fprintf(&b, "The check %q has failed: %s\n%s\n", s.Context, clip(s.Description, maxPart), clip(s.TargetURL, 500))
			out.at = later(out.at, s.UpdatedAt)
		}
	}
	out.text = b.String()
	return out, out.text != "", nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// checkRuns are the latest runs on a commit.
func (t *Tracker) checkRuns(ctx context.Context, sha string) ([]checkRun, error) {
	var all []checkRun
	for page := 1; page <= maxPages; page++ {
		var answer checkRuns
		path := t.repo("/commits/%s/check-runs?filter=latest&per_page=%d&page=%d", sha, perPage, page)
		if _, err := t.call(ctx, http.MethodGet, path, nil, &answer); err != nil {
			return nil, err
		}
		all = append(all, answer.Runs...)
		if len(answer.Runs) < perPage {
			break
		}
	}
	return all, nil
}

// statuses are the latest statuses on a commit, one a context.
func (t *Tracker) statuses(ctx context.Context, sha string) ([]commitStatus, error) {
	var all []commitStatus
	for page := 1; page <= maxPages; page++ {
		var answer commitStatuses
		path := t.repo("/commits/%s/status?per_page=%d&page=%d", sha, perPage, page)
		if _, err := t.call(ctx, http.MethodGet, path, nil, &answer); err != nil {
			return nil, err
		}
		all = append(all, answer.Statuses...)
		if len(answer.Statuses) < perPage {
			break
		}
	}
	return all, nil
}

// requiredChecks are what rulesets and branch protection ask for. Both can be read without being an administrator.
func (t *Tracker) requiredChecks(ctx context.Context, base string) ([]required, error) {
	var want []required
	var rules []rule
	err := t.stack.Twice(ctx, func(ctx context.Context) (err error) {
		rules, err = pages[rule](ctx, t, t.repo("/rules/branches/%s", url.PathEscape(base)), nil)
		return err
	})
	if err != nil && forge.Status(err) != http.StatusNotFound {
		return nil, err
	}
	for _, r := range rules {
		if r.Type == "required_status_checks" {
			for _, c := range r.Parameters.Checks {
				want = append(want, required{c.Context, c.App})
			}
		}
	}
	var b protected
	err = t.stack.Twice(ctx, func(ctx context.Context) error {
		_, err := t.call(ctx, http.MethodGet, t.repo("/branches/%s", url.PathEscape(base)), nil, &b)
		return err
	})
	if err != nil && forge.Status(err) != http.StatusNotFound {
		return nil, err
	}
	for _, name := range b.Protection.Checks.Contexts {
		want = append(want, required{name: name})
	}
	return want, nil
}

// runText says what a failed run says: its own summary, and for GitHub Actions the end of its log.
func (t *Tracker) runText(ctx context.Context, c checkRun) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "The check %q has failed (%s).\n%s\n", c.Name, c.Conclusion, clip(c.DetailsURL, 500))
	for _, part := range []string{c.Output.Title, c.Output.Summary, c.Output.Text} {
		if part = strings.TrimSpace(part); part != "" {
			b.WriteString(cutAt(part, maxPart) + "\n")
		}
	}
	if c.App.Slug != "github-actions" {
		return b.String(), nil
	}
	log, err := t.jobLog(ctx, c.ID)
	if err != nil {
		return "", err
	}
	if log != "" {
		b.WriteString("The end of its log:\n" + log + "\n")
	}
	return b.String(), nil
}

// jobLog reads the end of a job's log. The API answers with an address elsewhere, which gets no token. A log that is
// gone, or may not be read, is no reason to do without the rest; a token that the API refuses is.
func (t *Tracker) jobLog(ctx context.Context, job int64) (string, error) {
	var b strings.Builder
	path := t.repo("/actions/jobs/%d/logs", job)
	_, err := t.call(forge.LastBytes(ctx, maxPart), http.MethodGet, path, nil, &b)
	if err == nil {
		return strings.ToValidUTF8(b.String(), ""), nil
	}
	var f *forge.Failure
	if ctx.Err() != nil || errors.As(err, &f) && f.Status == http.StatusUnauthorized && strings.HasSuffix(f.Path, path) {
		return "", err
	}
	t.cfg.Log.Warn().Err(err).Int64("job", job).Msg("read the log of a failed check")
	return "", nil
}
