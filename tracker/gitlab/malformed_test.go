package gitlab

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

// faultAt injects a fault into the calls with this method and path suffix.
func faultAt(method, path string, f gitlabtest.Fault) func(forgetest.Call) *gitlabtest.Fault {
	return func(c forgetest.Call) *gitlabtest.Fault {
		if c.Method == method && strings.HasSuffix(c.Path, path) {
			return &f
		}
		return nil
	}
}

// TestUnbelievedWrite: a write whose answer does not show the change is a failure.
func TestUnbelievedWrite(t *testing.T) {
	t.Parallel()
	open := `{"iid":1,"project_id":7,"state":"opened","labels":[]}`
	other := `{"iid":2,"project_id":7,"state":"closed","labels":["In-Review"]}`
	request := tracker.Request{Key: "1", Head: "ralph/1", Base: "main", Title: "Fix", Body: "Closes #1"}
	for _, c := range []struct {
		method, path, body string
		do                 func(*rig) error
	}{
		{http.MethodPut, "/issues/1", open, func(r *rig) error { return r.Change(t.Context(), "1", tracker.Change{Close: true}) }},
		{http.MethodPut, "/issues/1", other, func(r *rig) error { return r.Change(t.Context(), "1", tracker.Change{Close: true}) }},
		{http.MethodPost, "/notes", "{}", func(r *rig) error { return r.Report(t.Context(), "1", tracker.Report{Run: "r", Body: "x"}) }},
		{http.MethodPost, "/merge_requests", "{}", func(r *rig) error { _, err := r.OpenRequest(t.Context(), request); return err }},
		{http.MethodPost, "/merge_requests", "null", func(r *rig) error { _, err := r.OpenRequest(t.Context(), request); return err }},
		{http.MethodPost, "/merge_requests", `{"iid":1,"state":"opened","source_branch":"ralph/1"}`, func(r *rig) error {
			_, err := r.OpenRequest(t.Context(), request)
			return err
		}},
	} {
		r := newRig(t)
		r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.ada})
		r.server.Inject(faultAt(c.method, c.path, gitlabtest.Fault{Status: http.StatusOK, Body: c.body}))
		var away *tracker.UnavailableError
		if err := c.do(r); !errors.As(err, &away) {
			t.Errorf("%s %s answers %s: %v, want *UnavailableError", c.method, c.path, c.body, err)
		}
	}
}
