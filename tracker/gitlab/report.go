package gitlab

import (
	"context"
	"fmt"
	"net/http"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker/forge"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// quickAction matches lines that GitLab executes in a note or description: they begin with a slash and a word.
var quickAction = pattern.Lazy(`(?m)^([ \t]*)/([A-Za-z])`)

// escapeActions escapes lines that GitLab would execute.
func escapeActions(text string) string { return quickAction().ReplaceAllString(text, `$1\/$2`) }

// poster returns access to the notes of ralph's account on an issue or a merge request.
func (t *Tracker) poster(number int, request bool, self int64) forge.Poster {
	issuePath := apiPath(number, request)
	write := func(ctx context.Context, method, path, body string) error {
		_, err := getOne(ctx, completeNote, func(o ...gl.RequestOptionFunc) (*gl.Note, *gl.Response, error) {
			n := new(gl.Note)
			resp, err := t.do(method, issuePath+path, map[string]string{"body": body}, n, o)
			return n, resp, err
		})
		return err
	}
	newestFirst := &gl.ListIssueNotesOptions{OrderBy: gl.Ptr("created_at"), Sort: gl.Ptr("desc")}
	return forge.Poster{
		Find: func(ctx context.Context, match func(string) bool) (found []forge.Post, err error) {
			err = eachPage(ctx, completeNote, func(o ...gl.RequestOptionFunc) (some []*gl.Note, _ *gl.Response, _ error) {
				resp, err := t.do(http.MethodGet, issuePath+"/notes", newestFirst, &some, o)
				return some, resp, err
			}, func(some []*gl.Note) bool {
				for _, n := range some {
					if !n.System && int64(n.Author.ID) == self && match(n.Body) {
						found = append([]forge.Post{{ID: int64(n.ID), Body: n.Body}}, found...)
					}
				}
				return len(found) == 0
			})
			return found, err
		},
		Create: func(ctx context.Context, body string) error { return write(ctx, http.MethodPost, "/notes", body) },
		Edit: func(ctx context.Context, id int64, body string) error {
			return write(ctx, http.MethodPut, fmt.Sprintf("/notes/%d", id), body)
		},
		Delete: func(ctx context.Context, id int64) error {
			resp, err := t.do(http.MethodDelete, fmt.Sprintf("%s/notes/%d", issuePath, id), nil, nil, []gl.RequestOptionFunc{gl.WithContext(ctx)})
			return explain(ctx, resp, err)
		},
	}
}
