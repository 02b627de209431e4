package github

import (
	"context"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/github/internal/api"
)

// poster returns access to the comments of ralph's account on an issue or a pull request.
func (t *Tracker) poster(number int, _ bool, self int64) forge.Poster {
	owner, name := t.project.Owner, t.project.Name
	return forge.Poster{
		Find: func(ctx context.Context, match func(string) bool) (found []forge.Post, err error) {
			err = t.allComments(ctx, number, func(c *gh.IssueComment) error {
				if account(c.User).ID == self && match(c.GetBody()) {
					found = append(found, forge.Post{ID: c.GetID(), Body: c.GetBody()})
				}
				return nil
			})
			return found, err
		},
		Create: func(ctx context.Context, body string) error {
			_, err := api.One(ctx, completeComment, func(ctx context.Context) (*gh.IssueComment, *gh.Response, error) {
				return t.api.Issues.CreateComment(ctx, owner, name, number, &gh.IssueComment{Body: &body})
			})
			return err
		},
		Edit: func(ctx context.Context, id int64, body string) error {
			_, err := api.One(transport.WithIdempotent(ctx), completeComment, func(ctx context.Context) (*gh.IssueComment, *gh.Response, error) {
				return t.api.Issues.EditComment(ctx, owner, name, id, &gh.IssueComment{Body: &body})
			})
			return err
		},
		Delete: func(ctx context.Context, id int64) error {
			resp, err := t.api.Issues.DeleteComment(ctx, owner, name, id)
			return api.Explain(ctx, resp, err)
		},
	}
}
