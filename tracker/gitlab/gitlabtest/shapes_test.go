package gitlabtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shapes returns the fields in GitLab's documentation and in the samples of its own client, with their JSON types.
func shapes(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open("testdata/shapes.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, kinds, ok := strings.Cut(lines.Text(), " "); ok && !strings.HasPrefix(name, "#") {
			out[name] = " " + kinds + " "
		}
	}
	return out
}

// TestShapes compares every answer with the samples: it has no unknown field, and no field of another type.
func TestShapes(t *testing.T) {
	t.Parallel()
	s, p, ada := populated(t)
	known := shapes(t)
	for path, kind := range map[string]string{
		"user": "user", "users?username=ada": "user", fmt.Sprintf("users/%d", ada.ID): "user", "personal_access_tokens/self": "token",
		"": "project", "members/all": "member", "labels": "label", fmt.Sprintf("members/all/%d", ada.ID): "member", "issues": "issue", "issues/1": "issue",
		"issues/1/notes": "note", "issues/1/resource_label_events": "event", "issues/1/links": "issue", "issues/1/closed_by": "merge",
		"merge_requests": "merge", "merge_requests/1": "merge", "merge_requests/1/versions": "version",
		"merge_requests/1/discussions": "discussion", "merge_requests/1/notes": "note", "events?action=commented&after=2020-01-01": "activity",
		fmt.Sprintf("issues/1/notes/%d/award_emoji", p.issue(1).notes[0].id): "award",
		fmt.Sprintf("pipelines/%d/jobs", p.merge(1).pipeline.id):             "job",
	} {
		status, body := ask(t, s, p, path)
		if status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
			continue
		}
		var v any
		if err := json.Unmarshal(body, &v); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if n := compare(t, known, kind, v); n == 0 {
			t.Errorf("%s: no object in %s", path, body)
		}
	}
}

// TestUnknownParameters: an undocumented parameter is refused.
func TestUnknownParameters(t *testing.T) {
	t.Parallel()
	s, p, _ := populated(t)
	for _, path := range []string{"users", "labels", "issues", "issues/1/notes", "merge_requests", "merge_requests/1/notes", "members/all"} {
		if status, _ := ask(t, s, p, path+"?per_page=5"); status != http.StatusOK {
			t.Errorf("%s: status %d", path, status)
		}
		if status, body := ask(t, s, p, path+"?colour=red"); status != http.StatusBadRequest {
			t.Errorf("%s with an unknown parameter: status %d, %s", path, status, body)
		}
	}
}

// populated returns an instance with one object of each kind.
func populated(t *testing.T) (*Server, *Project, *User) {
	t.Helper()
	s := New(t)
	p := s.AddProject("a/b")
	ada := s.AddUser(User{Username: "ada"})
	s.AddToken(ada, "secret", time.Now().AddDate(1, 0, 0), "api")
	p.SetMember(ada, Maintainer)
	p.AddIssue(Issue{Title: "x", Description: "y", Author: ada, Labels: []string{"l"}, Milestone: "m", Assignees: []*User{ada}})
	p.AddIssue(Issue{Title: "z"})
	p.Block(2, 1)
	p.Award(ada, p.Comment(ada, 1, "hello", false), "eyes")
	m := p.AddMerge(Merge{Title: "m", Description: "closes #1", Source: "s", Target: "main", Author: ada, Reviewers: []*User{ada}})
	p.Discuss(m, Thread{By: ada, Body: "no", Resolvable: true, Path: "f", Line: 1})
	p.Run(m, "failed", Job{Name: "unit", Status: "failed"})
	return s, p, ada
}

func ask(t *testing.T, s *Server, p *Project, path string) (int, []byte) {
	t.Helper()
	return send(t, s, p, http.MethodGet, path, "")
}

// send makes one call and returns the status and the JSON of its answer.
func send(t *testing.T, s *Server, p *Project, method, path, body string) (int, []byte) {
	t.Helper()
	below := "projects/" + strings.ReplaceAll(p.Path(), "/", "%2F") + "/" + path
	if strings.HasPrefix(path, "user") || strings.HasPrefix(path, "personal") {
		below = path
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+apiPath+strings.TrimSuffix(below, "/"), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("PRIVATE-TOKEN", "secret")
	r.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer json.RawMessage
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return resp.StatusCode, answer
}

// nested returns the kind of object in a field.
func nested(field string) string {
	switch field {
	case "author", "assignees", "reviewers", "user":
		return "user"
	case "note", "notes":
		return "note"
	case "head_pipeline":
		return "pipeline"
	}
	return ""
}

func compare(t *testing.T, known map[string]string, kind string, v any) (objects int) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			objects += compare(t, known, kind, x)
		}
	case map[string]any:
		objects++
		for field, x := range v {
			kinds, has := known[kind+"."+field]
			if is := typeOf(x); !has || !strings.Contains(kinds, " "+is+" ") {
				t.Errorf("%s.%s is %s; the samples have%s", kind, field, is, kinds)
			}
			if inner := nested(field); inner != "" {
				compare(t, known, inner, x)
			}
		}
	}
	return objects
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}
