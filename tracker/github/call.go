package github

import (
	"context"
	"fmt"
	"strings"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// do makes a request for which go-github has no method, and decodes its answer into out, a pointer or an io.Writer.
func (t *Tracker) do(ctx context.Context, method, path string, body, out any) (*gh.Response, error) {
	req, err := t.api.NewRequest(method, path, body)
	if err != nil {
		return nil, err
	}
	return t.api.Do(ctx, req, out)
}

// path returns an API path below the project.
func (t *Tracker) path(format string, args ...any) string {
	return "repos/" + t.project.String() + fmt.Sprintf(format, args...)
}

// issue adds fields that go-github v62 lacks.
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

// project returns OWNER/NAME of the issue's project.
func (i *issue) project() string {
	_, p, _ := strings.Cut(i.GetRepositoryURL(), "/repos/")
	return p
}

// The following functions report whether an answer is complete: it has the fields on which ralph bases decisions. An account in
// another object is either complete or absent, as for deleted accounts.

func completeUser(u *gh.User) bool { return u.GetID() > 0 && u.GetLogin() != "" && u.GetType() != "" }

func completeOrAbsent(u *gh.User) bool { return u == nil || u.GetID() != 0 && u.GetLogin() != "" }

func completeLabel(l *gh.Label) bool { return l.GetName() != "" }

// completeIssue also requires labels: without them an issue would no longer seem to be ralph's.
func completeIssue(i *issue) bool {
	return i.GetNumber() > 0 && (i.GetState() == "open" || i.GetState() == "closed") && transport.Complete(i.Labels, completeLabel) && completeOrAbsent(i.User)
}

func completeComment(c *gh.IssueComment) bool {
	return c.GetID() > 0 && !c.GetCreatedAt().IsZero() && completeOrAbsent(c.User)
}

func completePull(p *gh.PullRequest) bool {
	return p.GetNumber() > 0 && p.GetHTMLURL() != "" && p.GetState() != "" && p.GetHead().GetRef() != "" &&
		p.GetHead().GetSHA() != "" && p.GetBase().GetRef() != "" && transport.Complete(p.Labels, completeLabel) && completeOrAbsent(p.User)
}

// account converts a user. Any type except User is a bot.
func account(u *gh.User) forge.Account {
	if u == nil {
		return forge.Account{Name: "ghost"} // GitHub's name for a deleted account
	}
	return forge.Account{ID: u.GetID(), Name: u.GetLogin(), Bot: u.GetType() != "User"}
}
