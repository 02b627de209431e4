package githubtest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// errorRecorder records the errors that would have failed the test.
type errorRecorder struct {
	testing.TB
	errors []string
}

func (w *errorRecorder) Errorf(format string, args ...any) {
	w.errors = append(w.errors, fmt.Sprintf(format, args...))
}

// TestViolationsAreFound: a request or answer that GitHub's description does not allow fails the test.
func TestViolationsAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, path, body string
		spoil              func(*Server)
		want               string
		status             int // 0: any
	}{
		"none":                {method: http.MethodGet, path: "repos/acme/widgets/issues?state=open"},
		"unknown path":        {method: http.MethodGet, path: "repos/acme/widgets/wishes", want: "is not in GitHub's description"},
		"bad query":           {method: http.MethodGet, path: "repos/acme/widgets/issues?state=ajar", want: "request GET"},
		"bad body":            {method: http.MethodPost, path: "repos/acme/widgets/issues/1/comments", body: `{"text":"x"}`, want: "request POST"},
		"wrong type":          {method: http.MethodPost, path: "repos/acme/widgets/pulls", body: `{"title":"x","head":"h","base":"main","draft":"yes"}`, want: "request POST"},
		"bad answer":          {method: http.MethodGet, path: "repos/acme/widgets/issues", spoil: func(s *Server) { s.issues[0].Author = "unheard of"; s.desc = withoutNodeID(s.desc) }, want: "answer 200 to GET"},
		"unknown GraphQL":     {method: http.MethodPost, path: "graphql", body: `{"query":"{viewer{login}}"}`, want: "unknown GraphQL document"},
		"blank title":         {method: http.MethodPost, path: "repos/acme/widgets/pulls", body: `{"title":" ","head":"h","base":"main"}`, status: http.StatusUnprocessableEntity},
		"blanked title":       {method: http.MethodPatch, path: "repos/acme/widgets/issues/1", body: `{"title":""}`, status: http.StatusUnprocessableEntity},
		"issue without title": {method: http.MethodGet, path: "repos/acme/widgets/issues", spoil: func(s *Server) { s.AddIssue(Issue{}) }, want: "has no title"},
		"write without right": {method: http.MethodPost, path: "repos/acme/widgets/issues/1/comments", body: `{"body":"x"}`, spoil: func(s *Server) { s.users[Bot].Permission = "read" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &errorRecorder{TB: t}
			s := New(w)
			s.AddIssue(Issue{Title: "One"})
			if c.spoil != nil {
				c.spoil(s)
			}
			req, err := http.NewRequestWithContext(t.Context(), c.method, address(s, c.path), strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+Token)
			if c.body != "" {
				req.Header.Set("Content-Type", "application/json")
			}
			resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatal(err)
			}
			if c.status != 0 && resp.StatusCode != c.status {
				t.Errorf("status %d, want %d", resp.StatusCode, c.status)
			}
			switch said := strings.Join(w.errors, "\n"); {
			case c.want == "" && said != "":
				t.Errorf("found %q", said)
			case !strings.Contains(said, c.want):
				t.Errorf("found %q, want %q", said, c.want)
			}
		})
	}
}

// withoutNodeID returns a description whose example of an issue lacks a required field.
func withoutNodeID(d *description) *description {
	out := *d
	out.examples = map[string]string{}
	for k, v := range d.examples {
		out.examples[k] = v
	}
	out.examples["issue"] = strings.ReplaceAll(d.examples["issue"], `"node_id"`, `"no_id"`)
	return &out
}

func address(s *Server, path string) string {
	if path == "graphql" {
		return strings.TrimSuffix(s.BaseURL(), "v3/") + path
	}
	return s.BaseURL() + path
}
