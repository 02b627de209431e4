package github

import (
	"cmp"
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

// Differences between the clocks from which on something goes wrong: a warning in time, and what GitHub refuses apps.
const (
	clockWarn = 30 * time.Second
	clockFail = 5 * time.Minute
	tokenSoon = 7 * 24 * time.Hour
)

// repository is what the API says about the project and what we may do there.
type repository struct {
	FullName    string `json:"full_name"`
	Private     bool   `json:"private"`
	Archived    bool   `json:"archived"`
	HasIssues   bool   `json:"has_issues"`
	Permissions struct {
		Admin  bool `json:"admin"`
		Push   bool `json:"push"`
		Triage bool `json:"triage"`
	} `json:"permissions"`
}

// Whole is of the project that is asked for.
func (r repository) Whole() bool { return r.FullName != "" }

// Inspect looks at the project as ralph would use it, and changes nothing.
func (t *Tracker) Inspect(ctx context.Context, e tracker.Expectation) []tracker.Finding {
	var r repository
	head, err := t.call(ctx, http.MethodGet, t.repo(""), nil, &r)
	if err != nil {
		return []tracker.Finding{failing("project "+t.cfg.Project.String(), err)}
	}
	out := t.inspectProject(r)
	out = append(out, t.inspectIdentity(ctx))
	out = append(out, t.inspectPermissions(r, head, e)...)
	out = append(out, t.inspectLabels(ctx, e.Labels))
	return append(out, t.inspectClock(), t.inspectToken(head))
}

// failing makes a finding of an error, whose one line names the mend.
func failing(what string, err error) tracker.Finding {
	f := tracker.Finding{What: what, Severity: tracker.Fail, Detail: err.Error()}
	var cause *forge.Failure
	if errors.As(err, &cause) {
		f.Mend = cause.Mend
	}
	return f
}

func (t *Tracker) inspectProject(r repository) []tracker.Finding {
	f := tracker.Finding{What: "project " + t.cfg.Project.String(), Severity: tracker.OK, Detail: "reachable at " + t.api.BaseURL.Host}
	switch {
	case r.Archived:
		f.Severity, f.Detail, f.Mend = tracker.Fail, "is archived: nothing can be written", "unarchive it in its settings"
	case !r.HasIssues:
		f.Severity, f.Detail, f.Mend = tracker.Fail, "has no issues", "switch issues on in its settings"
	case !strings.EqualFold(r.FullName, t.cfg.Project.String()):
		f.Severity, f.Detail, f.Mend = tracker.Warn, "has moved to "+r.FullName, "set the remote's address, or project, to "+r.FullName
	}
	return []tracker.Finding{f}
}

func (t *Tracker) inspectIdentity(ctx context.Context) tracker.Finding {
	me, err := t.identity(ctx)
	if err != nil {
		return failing("identity", err)
	}
	f := tracker.Finding{What: "identity", Severity: tracker.OK, Detail: me.Login}
	if !me.Bot {
		f.Detail += " (a person's account: whatever it labels counts as that person's word)"
	}
	return f
}

func (t *Tracker) inspectLabels(ctx context.Context, want []string) tracker.Finding {
	absent, err := t.absentLabels(ctx, want)
	if err != nil {
		return failing("labels", err)
	}
	if len(absent) > 0 {
		return tracker.Finding{What: "labels", Severity: tracker.Warn, Detail: "do not exist: " + strings.Join(absent, ", "),
			Mend: fmt.Sprintf("gh label create %q --repo %s", absent[0], t.cfg.Project)}
	}
	return tracker.Finding{What: "labels", Severity: tracker.OK, Detail: "exist: " + cmp.Or(strings.Join(want, ", "), "none")}
}

func (t *Tracker) absentLabels(ctx context.Context, want []string) ([]string, error) {
	if len(want) == 0 {
		return nil, nil
	}
	all, err := pages[label](ctx, t, t.repo("/labels"), nil)
	if err != nil {
		return nil, err
	}
	var have []string
	for _, l := range all {
		have = append(have, l.Name)
	}
	return missing(have, want), nil
}

// CreateLabels makes the labels that do not exist. One that somebody makes meanwhile is no error.
func (t *Tracker) CreateLabels(ctx context.Context, names []string) error {
	absent, err := t.absentLabels(ctx, names)
	if err != nil {
		return fmt.Errorf("list labels: %w", err)
	}
	for _, name := range absent {
		body := map[string]string{"name": name, "color": "5319e7", "description": "used by ralph"}
		_, err := t.call(forge.Repeatable(ctx), http.MethodPost, t.repo("/labels"), body, new(label))
		if forge.Status(err) == http.StatusUnprocessableEntity {
			if _, there := t.call(ctx, http.MethodGet, t.repo("/labels/%s", url.PathEscape(name)), nil, new(label)); there == nil {
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("create label %s: %w", name, err)
		}
	}
	return nil
}

func (t *Tracker) inspectClock() tracker.Finding {
	f := tracker.Finding{What: "clock", Severity: tracker.OK, Detail: "agrees with GitHub's"}
	by, known := t.stack.Skew()
	switch {
	case !known:
		f.Detail = "GitHub does not tell the time"
	case by.Abs() >= clockFail:
		f.Severity = tracker.Fail
	case by.Abs() >= clockWarn:
		f.Severity = tracker.Warn
	}
	if f.Severity != tracker.OK {
		f.Detail, f.Mend = fmt.Sprintf("is %v ahead of GitHub's", by.Round(time.Second)), "set it by NTP: timedatectl set-ntp true"
	}
	return f
}

// inspectToken says when the token ends, where GitHub tells.
func (t *Tracker) inspectToken(head http.Header) tracker.Finding {
	f := tracker.Finding{What: "token's end", Severity: tracker.OK, Detail: "none known"}
	end, err := time.Parse("2006-01-02 15:04:05 MST", head.Get("GitHub-Authentication-Token-Expiration"))
	if err != nil {
		return f
	}
	f.Detail = end.Format(time.DateTime) + " UTC"
	if end.Sub(t.stack.Now()) < tokenSoon {
		f.Severity, f.Mend = tracker.Warn, "make a new one in time, or use a GitHub App, whose tokens renew themselves"
	}
	return f
}
