package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

const (
	reporter   = 20
	owner      = 50
	soon       = 7 * 24 * time.Hour // before its end a token is spoken of
	clockLimit = 2 * time.Minute
)

// inspection collects findings.
type inspection struct{ found []tracker.Finding }

func (i *inspection) say(s tracker.Severity, what, mend, detail string, args ...any) {
	i.found = append(i.found, tracker.Finding{What: what, Severity: s, Detail: fmt.Sprintf(detail, args...), Mend: mend})
}

// Inspect looks at reachability, identity, the token, permissions, labels and the clock. It changes nothing.
func (t *Tracker) Inspect(ctx context.Context, e tracker.Expectation) []tracker.Finding {
	var i inspection
	var self user
	if err := t.get(ctx, "user", &self); err != nil {
		i.say(tracker.Fail, "gitlab", "check the address, the network and the token", "%v", err)
		return i.found
	}
	var version struct {
		Version string `json:"version"`
	}
	if err := t.get(ctx, "version", &version); err != nil {
		version.Version = "of a version it does not tell"
	}
	i.say(tracker.OK, "gitlab", "", "%s is reachable, GitLab %s", t.cfg.BaseURL, version.Version)
	if self.Admin {
		i.say(tracker.Warn, "identity", "use an account that is no administrator", "%s administers the whole instance", self.name())
	} else {
		i.say(tracker.OK, "identity", "", "%s (id %d)", self.name(), self.ID)
	}
	t.inspectToken(ctx, &i)
	t.inspectProject(ctx, &i, e)
	t.inspectLabels(ctx, &i, e.Labels)
	t.inspectClock(&i)
	return i.found
}

// inspectToken says whether the token can do too little or too much.
func (t *Tracker) inspectToken(ctx context.Context, i *inspection) {
	const what = "token"
	var a accessToken
	err := t.get(ctx, "personal_access_tokens/self", &a)
	switch status := forge.Status(err); {
	case status == http.StatusNotFound || status == http.StatusUnauthorized || status == http.StatusBadRequest:
		i.say(tracker.Warn, what, "", "its scopes cannot be read; it is no access token of a person, project or group")
		return
	case err != nil:
		i.say(tracker.Warn, what, "", "its scopes cannot be read: %v", err)
		return
	case !slices.Contains(a.Scopes, "api"):
		i.say(tracker.Fail, what, "make a token with the scope api", "scopes %s: without api nothing can be written", strings.Join(a.Scopes, ", "))
	default:
		i.say(tracker.OK, what, "", "scopes %s", strings.Join(a.Scopes, ", "))
	}
	for _, s := range []string{"sudo", "admin_mode"} {
		if slices.Contains(a.Scopes, s) {
			i.say(tracker.Warn, what, "make a token without the scope "+s, "the scope %s is more than ralph needs", s)
		}
	}
	if end, err := time.Parse(time.DateOnly, a.Expires); err == nil {
		if left := end.Sub(t.stack.Now()); left < soon {
			i.say(tracker.Warn, what, "rotate it", "it ends on %s", a.Expires)
		}
	}
}

// inspectProject says whether the project and the role in it are what ralph needs.
func (t *Tracker) inspectProject(ctx context.Context, i *inspection, e tracker.Expectation) {
	const what = "project"
	var p projectInfo
	if err := t.get(ctx, t.project(""), &p); err != nil {
		i.say(tracker.Fail, what, "check the name of the project, and that the token's account is a member", "%s: %v", t.cfg.Project, err)
		return
	}
	switch {
	case p.Archived:
		i.say(tracker.Fail, what, "unarchive it", "%s is archived", p.Path)
	case p.IssuesAccess == "disabled":
		i.say(tracker.Fail, what, "switch issues on in the project's settings", "%s has no issues", p.Path)
	case e.Push && p.MergesEnabled != nil && !*p.MergesEnabled:
		i.say(tracker.Fail, what, "switch merge requests on in the project's settings", "%s has no merge requests", p.Path)
	default:
		i.say(tracker.OK, what, "", "%s", p.Path)
	}
	need, name := reporter, "Reporter"
	if e.Push {
		need, name = developer, "Developer"
	}
	switch level := p.level(); {
	case level < need:
		i.say(tracker.Fail, "role", "give the token's account the role "+name, "access level %d, want %d (%s)", level, need, name)
	case level >= owner:
		i.say(tracker.Warn, "role", "give the token's account the role "+name, "Owner is more than ralph needs")
	default:
		i.say(tracker.OK, "role", "", "access level %d", level)
	}
}

func (t *Tracker) inspectLabels(ctx context.Context, i *inspection, names []string) {
	const what = "labels"
	var missing []string
	for _, name := range names {
		if err := checkLabel(name); err != nil {
			i.say(tracker.Fail, what, "choose another name in the configuration", "%v", err)
			continue
		}
		found, err := t.existing(ctx, strings.TrimSpace(name))
		if err != nil {
			i.say(tracker.Fail, what, "", "%v", err)
			return
		}
		if found == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		i.say(tracker.Warn, what, "ralph doctor --create-labels", "missing: %s", strings.Join(missing, ", "))
	} else if len(names) > 0 {
		i.say(tracker.OK, what, "", "%s", strings.Join(names, ", "))
	}
}

func (t *Tracker) inspectClock(i *inspection) {
	switch by, known := t.stack.Skew(); {
	case !known:
		i.say(tracker.Warn, "clock", "", "GitLab does not tell its time")
	case by.Abs() > clockLimit:
		i.say(tracker.Warn, "clock", "synchronise this machine's clock", "this machine is %v from GitLab's time", by.Round(time.Second))
	default:
		i.say(tracker.OK, "clock", "", "within %v of GitLab's", clockLimit)
	}
}
