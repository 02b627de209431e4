package gitlabtest

import (
	"net/http"
	"strings"
	"testing"
)

// TestBlankTitle: like GitLab, the fake refuses a merge request without a title.
func TestBlankTitle(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"title":"","source_branch":"a","target_branch":"main"}`:  http.StatusBadRequest,
		`{"title":" ","source_branch":"a","target_branch":"main"}`: http.StatusBadRequest,
		`{"title":"x","source_branch":"a","target_branch":"main"}`: http.StatusCreated,
	} {
		s, p, _ := populated(t)
		if got := write(t, s, p, http.MethodPost, "merge_requests", body); got != want {
			t.Errorf("%s: status %d, want %d", body, got, want)
		}
		if got := write(t, s, p, http.MethodPut, "merge_requests/1", `{"title":"\t"}`); got != http.StatusBadRequest {
			t.Errorf("a blanked title: status %d", got)
		}
		if p.Merges()[0].Title != "m" {
			t.Errorf("the title is %q", p.Merges()[0].Title)
		}
	}
}

// write makes one call and returns its status.
func write(t *testing.T, s *Server, p *Project, method, path, body string) int {
	t.Helper()
	url := s.URL + apiPath + "projects/" + strings.ReplaceAll(p.Path(), "/", "%2F") + "/" + path
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("PRIVATE-TOKEN", "secret")
	r.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
