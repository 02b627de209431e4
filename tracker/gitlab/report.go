package gitlab

import (
	"context"
	"fmt"
	"net/http"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// quickAction is what GitLab executes in a note or a description: a line that begins with a slash and a word.
var quickAction = pattern.Lazy(`(?m)^([ \t]*)/([A-Za-z])`)

// noActions makes a text in which no line is a command to GitLab.
func noActions(text string) string { return quickAction().ReplaceAllString(text, `$1\/$2`) }

// lock makes reports and changes wait for each other. The caller calls release.
func (t *Tracker) lock(ctx context.Context) (release func(), err error) {
	if err := t.writing.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { t.writing.Release(1) }, nil
}

// Report writes or replaces the run's note.
func (t *Tracker) Report(ctx context.Context, key string, r tracker.Report) error {
	iid, ok := forge.Number(key)
	if !ok {
		return forge.NotFound(key)
	}
	release, err := t.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	self, err := t.identity(ctx)
	if err != nil {
		return err
	}
	r.Body = noActions(r.Body)
	err = t.signer.Report(ctx, iid, r, t.poster(fmt.Sprintf("/issues/%d", iid), self.ID))
	return t.below(ctx, key, err)
}

// poster writes the notes of ralph's account at a place, such as "/issues/7".
func (t *Tracker) poster(place string, self int) forge.Poster {
	type text struct {
		Body string `json:"body"`
	}
	write := func(ctx context.Context, method, path, body string) error {
		_, err := one(ctx, completeNote, func(o ...gl.RequestOptionFunc) (*gl.Note, *gl.Response, error) {
			n := new(gl.Note)
			resp, err := t.do(method, place+path, text{body}, n, o)
			return n, resp, err
		})
		return err
	}
	newestFirst := &gl.ListIssueNotesOptions{OrderBy: gl.Ptr("created_at"), Sort: gl.Ptr("desc")}
	return forge.Poster{
		Find: func(ctx context.Context, match func(string) bool) (found []forge.Post, err error) {
			err = each(ctx, completeNote, func(o ...gl.RequestOptionFunc) (some []*gl.Note, _ *gl.Response, _ error) {
				resp, err := t.do(http.MethodGet, place+"/notes", newestFirst, &some, o)
				return some, resp, err
			}, func(some []*gl.Note) bool {
				for _, n := range some {
					if !n.System && n.Author.ID == self && match(n.Body) {
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
			resp, err := t.do(http.MethodDelete, fmt.Sprintf("%s/notes/%d", place, id), nil, nil, []gl.RequestOptionFunc{gl.WithContext(ctx)})
			return explain(ctx, resp, err)
		},
	}
}

// Mark implements tracker.Marker.
func (t *Tracker) Mark(key string) string {
	iid, _ := forge.Number(key) // nobody reports on any other
	return t.signer.Mark(iid)
}
