package gitlab

import (
	"net/http"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
	"github.com/ralph-pool/ralph/tracker/trackertest"
)

// TestLateCalls is the table of docs/forges.md: the meaning of a lasting refusal, for each call at a run's end.
func TestLateCalls(t *testing.T) {
	t.Parallel()
	report := func(key, run, body string) func(*rig) error {
		return func(r *rig) error { return r.Report(t.Context(), key, tracker.Report{Run: run, Body: body}) }
	}
	request := func(head string) func(*rig) error {
		return func(r *rig) error {
			_, err := r.OpenRequest(t.Context(), tracker.Request{Head: head, Base: "main", Title: "Fix it", Body: "x"})
			return err
		}
	}
	for name, c := range map[string]struct {
		method, path string
		do           func(*rig) error
	}{
		"create a report": {http.MethodPost, `/issues/3/notes$`, report("3", "new", "x")},
		"edit a report":   {http.MethodPut, `/issues/1/notes/\d+$`, report("1", "old", "y")},
		"change labels": {http.MethodPut, `/issues/1$`, func(r *rig) error {
			return r.Change(t.Context(), "1", tracker.Change{AddLabels: []string{"x"}, RemoveLabels: []string{"no-human"}, Close: true})
		}},
		"open a request": {http.MethodPost, `/merge_requests$`, request("ralph/3")},
		"edit a request": {http.MethodPut, `/merge_requests/2$`, request("ralph/2")},
	} {
		for _, fault := range []struct {
			gitlabtest.Fault
			want trackertest.Class
		}{
			{gitlabtest.Fault{Status: http.StatusUnauthorized, Body: `{"message":"401 Unauthorized"}`}, trackertest.Stop},
			{gitlabtest.Fault{Status: http.StatusForbidden, Body: `{"message":"403 Forbidden"}`}, trackertest.Stop},
			{gitlabtest.Fault{Status: http.StatusNotFound, Body: `{"message":"404 Not found"}`}, trackertest.Skip},
			{gitlabtest.Fault{Status: http.StatusGone, Body: `{"message":"410 Gone"}`}, trackertest.Skip},
			{gitlabtest.Fault{Status: http.StatusBadRequest, Body: `{"error":"title is empty"}`}, trackertest.Skip},
			{gitlabtest.Fault{Status: http.StatusUnprocessableEntity, Body: `{"message":"x"}`}, trackertest.Skip},
			{gitlabtest.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"86400"}}}, trackertest.Away},
			{gitlabtest.Fault{Status: http.StatusBadGateway}, trackertest.Away},
			{gitlabtest.Fault{Status: http.StatusOK, Body: `{}`}, trackertest.Away},
			{gitlabtest.Fault{Status: http.StatusOK, Body: `[null]`}, trackertest.Away},
			{gitlabtest.Fault{Reset: true}, trackertest.Away},
		} {
			r := faultRig(t, 0)
			r.project.AddMerge(gitlabtest.Merge{Title: "Fix", Source: "ralph/2", Target: "main", Author: r.ralph})
			r.project.AddIssue(gitlabtest.Issue{Title: "Three"})
			if err := report("1", "old", "x")(r); err != nil {
				t.Fatal(err)
			}
			var met atomic.Bool
			r.server.Inject(func(call gitlabtest.Call) *gitlabtest.Fault {
				if call.Method != c.method || !regexp.MustCompile(c.path).MatchString(call.Path) {
					return nil
				}
				met.Store(true)
				return &fault.Fault
			})
			if err := c.do(r); trackertest.ClassOf(err) != fault.want || !met.Load() {
				t.Errorf("%s meets (%v) %d %s: %v is %q, want %q", name, met.Load(), fault.Status, fault.Body, err, trackertest.ClassOf(err), fault.want)
			}
		}
	}
}
