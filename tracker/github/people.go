package github

import (
	"cmp"
	"context"
	"net/http"
	"net/url"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/github/internal/api"
)

// collaborators lists the accounts that may write to the project. Only accounts with write permission may see the list.
func (t *Tracker) collaborators(ctx context.Context) (forge.Roster, error) {
	return forge.ReadRoster(func(visit func([]*gh.User) bool) error {
		return api.Each(ctx, func(*gh.User) bool { return true }, func(ctx context.Context, p gh.ListOptions) ([]*gh.User, *gh.Response, error) {
			opts := &gh.ListCollaboratorsOptions{Affiliation: "all", Permission: "push", ListOptions: p}
			return t.api.Repositories.ListCollaborators(ctx, t.project.Owner, t.project.Name, opts)
		}, visit)
	}, func(u *gh.User) (int64, tracker.Distrust) {
		if !u.Permissions["push"] || u.GetType() != "User" { // old servers ignore the filter
			return 0, ""
		}
		return u.GetID(), tracker.TrustedAccount
	})
}

// permission reads one person's permission. Names can be freed and taken by others; the ID shows whether it is the same person.
func (t *Tracker) permission(ctx context.Context, a forge.Account) (tracker.Distrust, error) {
	answer, err := api.One(ctx, func(*gh.RepositoryPermissionLevel) bool { return true },
		func(ctx context.Context) (*gh.RepositoryPermissionLevel, *gh.Response, error) {
			return t.api.Repositories.GetPermissionLevel(ctx, t.project.Owner, t.project.Name, url.PathEscape(a.Name))
		})
	if err != nil {
		if transport.Status(err) == http.StatusNotFound {
			return tracker.NoWriteAccess, nil
		}
		return "", err
	}
	if p := answer.GetPermission(); answer.GetUser().GetID() == a.ID && (p == "write" || p == "admin") {
		return tracker.TrustedAccount, nil
	}
	return tracker.NoWriteAccess, nil
}

// comments passes the comments on an issue to visit until it fails.
func (t *Tracker) comments(ctx context.Context, number int, visit func(forge.Comment) error) error {
	return t.allComments(ctx, number, func(c *gh.IssueComment) error {
		return visit(forge.Comment{By: account(c.User), Body: c.GetBody(), At: c.GetCreatedAt().Time})
	})
}

// allComments passes the comments, oldest first, to visit until it fails.
func (t *Tracker) allComments(ctx context.Context, number int, visit func(*gh.IssueComment) error) error {
	var failed error
	err := api.Each(ctx, completeComment, func(ctx context.Context, p gh.ListOptions) ([]*gh.IssueComment, *gh.Response, error) {
		return t.api.Issues.ListComments(ctx, t.project.Owner, t.project.Name, number, &gh.IssueListCommentsOptions{ListOptions: p})
	}, func(some []*gh.IssueComment) bool {
		for _, c := range some {
			if failed == nil {
				failed = visit(c)
			}
		}
		return failed == nil
	})
	return cmp.Or(err, failed)
}
