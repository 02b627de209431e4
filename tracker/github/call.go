package github

import (
	"context"
	"fmt"
	"strings"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// do makes a request that go-github has no method for, and decodes its answer into out, a pointer or an io.Writer.
func (t *Tracker) do(ctx context.Context, method, path string, body, out any) (*gh.Response, error) {
	req, err := t.api.NewRequest(method, path, body)
	if err != nil {
		return nil, err
	}
	return t.api.Do(ctx, req, out)
}

// path is an address below the project.
func (t *Tracker) path(format string, args ...any) string {
	return "repos/" + t.project.String() + fmt.Sprintf(format, args...)
}

// issue is go-github's with what v62 lacks.
type issue struct {
	gh.Issue
	Dependencies struct {
		Total int `json:"total_blocked_by"`
	} `json:"issue_dependencies_summary"`
	SubIssues struct {
		Total int `json:"total"`
	} `json:"sub_issues_summary"`
}

func (i *issue) labels() []string { return namesOf(i.Labels) }

// project is the OWNER/NAME that the issue belongs to.
func (i *issue) project() string {
	_, p, _ := strings.Cut(i.GetRepositoryURL(), "/repos/")
	return p
}

// The following say which answers are complete: they have the fields that ralph decides by. An account inside something
// else is absent, as of deleted ones, or complete.

func completeUser(u *gh.User) bool { return u.GetID() > 0 && u.GetLogin() != "" && u.GetType() != "" }

func named(u *gh.User) bool { return u == nil || u.GetID() != 0 && u.GetLogin() != "" }

func completeLabel(l *gh.Label) bool { return l.GetName() != "" }

// completeIssue needs the labels too: an issue without them would seem to be ralph's no more.
func completeIssue(i *issue) bool {
	return i.GetNumber() > 0 && (i.GetState() == "open" || i.GetState() == "closed") && transport.Complete(i.Labels, completeLabel) && named(i.User)
}

func completeComment(c *gh.IssueComment) bool {
	return c.GetID() > 0 && !c.GetCreatedAt().IsZero() && named(c.User)
}

func completePull(p *gh.PullRequest) bool {
	return p.GetNumber() > 0 && p.GetHTMLURL() != "" && p.GetState() != "" && p.GetHead().GetRef() != "" &&
		p.GetHead().GetSHA() != "" && p.GetBase().GetRef() != "" && transport.Complete(p.Labels, completeLabel) && named(p.User)
}

// account is a user as the judges of trust know it. Any other type than User is a bot.
func account(u *gh.User) forge.Account {
	if u == nil {
		return forge.Account{Name: "ghost"} // GitHub's name for a deleted account
	}
	return forge.Account{ID: u.GetID(), Name: u.GetLogin(), Bot: u.GetType() != "User"}
}
