package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/github/internal/api"
)

// Inspect checks the project, the login, permissions, labels and the clock. It changes nothing.
func (t *Tracker) Inspect(ctx context.Context, e tracker.Expectation) []tracker.Finding {
	var f forge.Findings
	project := "project " + t.project.String()
	ask := transport.Expect(transport.Follow(ctx), func(r *gh.Repository) bool { return r.GetFullName() != "" })
	r, resp, err := t.api.Repositories.Get(ask, t.project.Owner, t.project.Name)
	if err != nil {
		f.Error(project, api.Explain(ctx, resp, err))
		return f
	}
	switch {
	case r.GetArchived():
		f.Fail(project, "unarchive it in its settings", "is archived: nothing can be written")
	case !r.GetHasIssues():
		f.Fail(project, "switch issues on in its settings", "has no issues")
	case !strings.EqualFold(r.GetFullName(), t.project.String()):
		f.Warn(project, "set the remote's address to "+r.GetFullName(), "has moved to %s", r.GetFullName())
	default:
		f.OK(project, "reachable at %s", t.api.BaseURL.Host)
	}
	switch me, err := t.Identity(ctx); {
	case err != nil:
		f.Error("identity", err)
	case me.Bot:
		f.OK("identity", "%s", me.Name)
	default:
		f.OK("identity", "%s (a person's account: labels that it sets count as that person's decision)", me.Name)
	}
	if t.app != nil {
		inspectApp(&f, t.app.Permissions(), e)
	} else {
		inspectToken(&f, r, resp.Header, e)
	}
	if missing, err := t.absentLabels(ctx, e.Labels); err != nil {
		f.Error(tracker.FindingLabels, err)
	} else {
		f.Labels(e.Labels, missing)
	}
	f.Clock(t.Stack)
	end, err := time.Parse("2006-01-02 15:04:05 MST", resp.Header.Get("GitHub-Authentication-Token-Expiration"))
	if err != nil {
		end = time.Time{}
	}
	f.Expiry(t.Stack, end)
	return f
}

// inspectToken checks whether the token has too few or too many permissions.
func inspectToken(f *forge.Findings, r *gh.Repository, head http.Header, e tracker.Expectation) {
	const what, better = "token", "make a fine-grained token for this project with issues, pull requests and contents: write"
	may := r.GetPermissions()
	switch {
	case e.Push && !may["push"]:
		f.Fail("permissions", "give the account write access, or the token contents and pull requests: write",
			"may not push to the project")
	case !may["push"] && !may["triage"]:
		f.Fail("permissions", "give the account triage access, or the token issues: write", "may not label issues of the project")
	default:
		f.OK("permissions", "enough on the project")
	}
	if _, classic := head["X-Oauth-Scopes"]; !classic {
		f.OK(what, "fine-grained; GitHub does not report its permissions")
		return
	}
	scopes := strings.FieldsFunc(head.Get("X-OAuth-Scopes"), func(r rune) bool { return r == ',' || r == ' ' })
	excess := slices.DeleteFunc(slices.Clone(scopes), func(s string) bool {
		return s != "workflow" && s != "delete_repo" && s != "site_admin" && !strings.HasPrefix(s, "admin:") && !strings.HasPrefix(s, "write:packages")
	})
	list := strings.Join(scopes, ", ")
	switch {
	case !slices.Contains(scopes, "repo") && (r.GetPrivate() || !slices.Contains(scopes, "public_repo")):
		f.Fail(what, better, "classic, lacks the scope repo; it has: %s", cmp.Or(list, "none"))
	case len(excess) > 0:
		f.Warn(what, better, "classic, with more permissions than ralph needs: %s", strings.Join(excess, ", "))
	default:
		f.OK(what, "classic, with scopes %s", list)
	}
}

// inspectApp checks the permissions of an app's installation.
func inspectApp(f *forge.Findings, granted map[string]string, e tracker.Expectation) {
	const what = "permissions"
	need := map[string]string{"issues": "write", "metadata": "read"}
	if e.Push {
		need["contents"], need["pull_requests"], need["checks"], need["statuses"] = "write", "write", "read", "read"
	}
	var lacks, excess []string
	for name, level := range need {
		if have := granted[name]; have == "" || level == "write" && have == "read" {
			lacks = append(lacks, name+": "+level)
		}
	}
	for _, name := range []string{"administration", "environments", "members", "repository_hooks", "secrets", "workflows"} {
		if level := granted[name]; level != "" && level != "read" {
			excess = append(excess, name+": "+level)
		}
	}
	slices.Sort(lacks)
	switch {
	case len(lacks) > 0:
		f.Fail(what, "grant them in the app's settings and accept them in the installation", "the app lacks %s", strings.Join(lacks, ", "))
	case len(excess) > 0:
		f.Warn(what, "remove them in the app's settings", "the app has more permissions than ralph needs: %s", strings.Join(excess, ", "))
	default:
		f.OK(what, "the app has what it needs")
	}
}

func (t *Tracker) absentLabels(ctx context.Context, want []string) ([]string, error) {
	if len(want) == 0 {
		return nil, nil
	}
	have, err := api.All(ctx, completeLabel, func(ctx context.Context, p gh.ListOptions) ([]*gh.Label, *gh.Response, error) {
		return t.api.Issues.ListLabels(ctx, t.project.Owner, t.project.Name, &p)
	})
	return tracker.MissingNames(namesOf(have), want), err
}

// CreateLabels creates the labels that do not exist. It ignores that somebody else creates one meanwhile.
func (t *Tracker) CreateLabels(ctx context.Context, names []string) error {
	owner, project := t.project.Owner, t.project.Name
	absent, err := t.absentLabels(ctx, names)
	if err != nil {
		return fmt.Errorf("list labels: %w", err)
	}
	for _, name := range absent {
		_, err := api.One(transport.WithIdempotent(ctx), completeLabel, func(ctx context.Context) (*gh.Label, *gh.Response, error) {
			label := &gh.Label{Name: &name, Color: gh.String("5319e7"), Description: gh.String("used by ralph")}
			return t.api.Issues.CreateLabel(ctx, owner, project, label)
		})
		if transport.Status(err) == http.StatusUnprocessableEntity {
			_, look := api.One(ctx, completeLabel, func(ctx context.Context) (*gh.Label, *gh.Response, error) {
				return t.api.Issues.GetLabel(ctx, owner, project, url.PathEscape(name))
			})
			if look == nil {
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("create label %s: %w", name, err)
		}
	}
	return nil
}
