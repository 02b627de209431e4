package gitlab

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// Inspect checks reachability, identity, the token, permissions, labels and the clock. It changes nothing.
func (t *Tracker) Inspect(ctx context.Context, e tracker.Expectation) []tracker.Finding {
	var f forge.Findings
	self, err := getOne(ctx, completeUser, t.api.Users.CurrentUser)
	if err != nil {
		f.Error("gitlab", err)
		return f
	}
	version, err := getOne(ctx, func(v *gl.Version) bool { return v.Version != "" }, t.api.Version.GetVersion)
	if err != nil {
		version = &gl.Version{Version: "of an unknown version"}
	}
	f.OK("gitlab", "%s is reachable, GitLab %s", t.Settings.BaseURL, version.Version)
	if self.IsAdmin {
		f.Warn("identity", "use an account that is not an administrator", "%s administers the whole instance", self.Username)
	} else {
		f.OK("identity", "%s (id %d)", self.Username, self.ID)
	}
	t.inspectToken(ctx, &f)
	t.inspectProject(ctx, &f, e)
	t.inspectLabels(ctx, &f, e.Labels)
	f.Clock(t.Stack)
	return f
}

// inspectToken checks whether the token has too few or too many scopes.
func (t *Tracker) inspectToken(ctx context.Context, f *forge.Findings) {
	const what = "token"
	a, err := getOne(ctx, func(a *gl.PersonalAccessToken) bool { return a.Scopes != nil }, t.api.PersonalAccessTokens.GetSinglePersonalAccessToken)
	switch transport.Status(err) {
	case http.StatusNotFound, http.StatusUnauthorized, http.StatusBadRequest:
		f.Warn(what, "", "its scopes cannot be read; it is not an access token of a person, project or group")
		return
	}
	if err != nil {
		f.Warn(what, "", "its scopes cannot be read: %v", err)
		return
	}
	if scopes := strings.Join(a.Scopes, ", "); slices.Contains(a.Scopes, "api") {
		f.OK(what, "scopes %s", scopes)
	} else {
		f.Fail(what, "make a token with the scope api", "scopes %s: without api nothing can be written", scopes)
	}
	for _, s := range []string{"sudo", "admin_mode"} {
		if slices.Contains(a.Scopes, s) {
			f.Warn(what, "make a token without the scope "+s, "the scope %s is more than ralph needs", s)
		}
	}
	if a.ExpiresAt != nil {
		f.Expiry(t.Stack, time.Time(*a.ExpiresAt))
	}
}

// readProject reads the project.
func (t *Tracker) readProject(ctx context.Context) (*gl.Project, error) {
	complete := func(p *gl.Project) bool { return p.ID > 0 && p.PathWithNamespace != "" }
	return getOne(ctx, complete, func(o ...gl.RequestOptionFunc) (*gl.Project, *gl.Response, error) {
		return t.api.Projects.GetProject(t.project.Path, nil, o...)
	})
}

// home returns the settings on which all of the project's issues depend.
func (t *Tracker) home(ctx context.Context) (forge.Home, error) {
	p, err := t.readProject(ctx)
	if err != nil {
		return forge.Home{}, err
	}
	return forge.Home{Name: p.PathWithNamespace, NoIssues: p.IssuesAccessLevel == gl.DisabledAccessControl}, nil
}

// inspectProject checks the project and the account's role in it.
func (t *Tracker) inspectProject(ctx context.Context, f *forge.Findings, e tracker.Expectation) {
	const what = "project"
	p, err := t.readProject(transport.Follow(ctx))
	if err != nil {
		f.Fail(what, "check the name of the project, and that the token's account is a member", "%s: %v", t.project, err)
		return
	}
	switch name := p.PathWithNamespace; {
	case p.Archived:
		f.Fail(what, "unarchive it", "%s is archived", name)
	case !strings.EqualFold(name, t.project.Path):
		f.Fail(what, "set the remote's address to "+name, "%s has moved to %s", t.project, name)
	case p.IssuesAccessLevel == gl.DisabledAccessControl:
		f.Fail(what, "switch issues on in the project's settings", "%s has no issues", name)
	case e.Push && !p.MergeRequestsEnabled:
		f.Fail(what, "switch merge requests on in the project's settings", "%s has no merge requests", name)
	default:
		f.OK(what, "%s", name)
	}
	need, name := gl.ReporterPermissions, "Reporter"
	if e.Push {
		need, name = gl.DeveloperPermissions, "Developer"
	}
	level := gl.NoPermissions
	if may := p.Permissions; may != nil {
		if may.ProjectAccess != nil {
			level = max(level, may.ProjectAccess.AccessLevel)
		}
		if may.GroupAccess != nil {
			level = max(level, may.GroupAccess.AccessLevel)
		}
	}
	fix := "give the token's account the role " + name
	switch {
	case level < need:
		f.Fail("role", fix, "access level %d, want %d (%s)", level, need, name)
	case level >= gl.OwnerPermissions:
		f.Warn("role", fix, "Owner is more than ralph needs")
	default:
		f.OK("role", "access level %d", level)
	}
}

func (t *Tracker) inspectLabels(ctx context.Context, f *forge.Findings, names []string) {
	var missing []string
	for _, name := range names {
		if err := checkLabel(name); err != nil {
			f.Fail(tracker.FindingLabels, "choose another name", "%v", err)
			continue
		}
		found, err := t.spellingsOf(ctx, name)
		if err != nil {
			f.Error(tracker.FindingLabels, err)
			return
		}
		if len(found) == 0 {
			missing = append(missing, name)
		}
	}
	f.Labels(names, missing)
}
