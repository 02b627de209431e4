package gitlab

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// whoAmI returns the account of the token.
func (t *Tracker) whoAmI(ctx context.Context) (forge.Account, error) {
	u, err := getOne(ctx, completeUser, t.api.Users.CurrentUser)
	if err != nil {
		return forge.Account{}, err
	}
	return forge.Account{ID: int64(u.ID), Name: u.Username, Bot: isBot(u)}, nil
}

// account converts a user. Whether it is a bot is not known without another request.
func account(u *gl.BasicUser) forge.Account {
	if u == nil {
		return accountOf(0, "")
	}
	return accountOf(u.ID, u.Username)
}

func accountOf(id int, name string) forge.Account {
	if id <= 0 {
		return forge.Account{Name: "ghost"} // GitLab's name for a deleted account
	}
	return forge.Account{ID: int64(id), Name: name}
}

// members lists the project's members, including those of groups above and of invited groups.
func (t *Tracker) members(ctx context.Context) (forge.Roster, error) {
	return forge.ReadRoster(func(visit func([]*gl.ProjectMember) bool) error {
		return eachPage(ctx, func(m *gl.ProjectMember) bool { return m.State != "" },
			func(o ...gl.RequestOptionFunc) ([]*gl.ProjectMember, *gl.Response, error) {
				return t.api.ProjectMembers.ListAllProjectMembers(t.project.Path, nil, o...)
			}, visit)
	}, func(m *gl.ProjectMember) (int64, tracker.Distrust) { return int64(m.ID), distrustOf(m) })
}

// distrustOf decides by a membership. Developers can write to the repository.
func distrustOf(m *gl.ProjectMember) tracker.Distrust {
	switch {
	case m.State != "active":
		return tracker.InactiveAccount
	case m.AccessLevel < gl.DeveloperPermissions:
		return tracker.NoWriteAccess
	}
	return tracker.TrustedAccount
}

// member reads the membership of one account.
func (t *Tracker) member(ctx context.Context, a forge.Account) (tracker.Distrust, error) {
	m, err := getOne(ctx, func(m *gl.ProjectMember) bool { return m.State != "" },
		func(o ...gl.RequestOptionFunc) (*gl.ProjectMember, *gl.Response, error) {
			return t.api.ProjectMembers.GetInheritedProjectMember(t.project.Path, int(a.ID), o...)
		})
	switch {
	case transport.Status(err) == http.StatusNotFound:
		return tracker.NoWriteAccess, nil
	case err != nil:
		return "", fmt.Errorf("ask what %s may do: %w", a.Name, err)
	}
	if why := distrustOf(m); why != tracker.TrustedAccount {
		return why, nil
	}
	return t.checkNotBot(ctx, a)
}

// checkNotBot reads whether an account is a bot.
func (t *Tracker) checkNotBot(ctx context.Context, a forge.Account) (tracker.Distrust, error) {
	u, err := getOne(ctx, completeUser, func(o ...gl.RequestOptionFunc) (*gl.User, *gl.Response, error) {
		return t.api.Users.GetUser(int(a.ID), gl.GetUsersOptions{}, o...)
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("ask who %s is: %w", a.Name, err)
	case int64(u.ID) != a.ID:
		return tracker.NoWriteAccess, nil
	case isBot(u):
		return tracker.UnlistedBot, nil
	}
	return tracker.TrustedAccount, nil
}

// isBot reports whether an account belongs to no person. Old versions of GitLab do not say so; for those the names decide that
// GitLab gives to token bots. A name can only remove trust.
func isBot(u *gl.User) bool {
	byName := strings.HasPrefix(u.Username, "project_") || strings.HasPrefix(u.Username, "group_")
	return u.Bot || byName && strings.Contains(u.Username, "_bot")
}

// notes passes all of an issue's notes, including system notes, to visit until it fails.
func (t *Tracker) notes(ctx context.Context, iid int, visit func(*gl.Note) error) error {
	opts := &gl.ListIssueNotesOptions{OrderBy: gl.Ptr("created_at"), Sort: gl.Ptr("asc")}
	seen := map[int]bool{} // a note that moves to another page between two reads is read twice
	var failed error
	err := eachPage(ctx, completeNote, func(o ...gl.RequestOptionFunc) ([]*gl.Note, *gl.Response, error) {
		return t.api.Notes.ListIssueNotes(t.project.Path, iid, opts, o...)
	}, func(some []*gl.Note) bool {
		for _, n := range some {
			if failed == nil && !seen[n.ID] {
				failed = visit(n)
			}
			seen[n.ID] = true
		}
		return failed == nil
	})
	return cmp.Or(err, failed)
}

func authorOf(n *gl.Note) forge.Account { return accountOf(n.Author.ID, n.Author.Username) }

func isPublic(n *gl.Note) bool { return !n.System && !n.Internal && !n.Confidential }

// comments passes people's notes on an issue to visit. It omits internal notes, which an agent's work could make public.
func (t *Tracker) comments(ctx context.Context, iid int, visit func(forge.Comment) error) error {
	return t.notes(ctx, iid, func(n *gl.Note) error {
		if !isPublic(n) {
			return nil
		}
		return visit(forge.Comment{By: authorOf(n), Body: n.Body, At: *n.CreatedAt})
	})
}
