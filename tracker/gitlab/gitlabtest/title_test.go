package gitlabtest

import (
	"net/http"
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
		if got, _ := send(t, s, p, http.MethodPost, "merge_requests", body); got != want {
			t.Errorf("%s: status %d, want %d", body, got, want)
		}
		if got, _ := send(t, s, p, http.MethodPut, "merge_requests/1", `{"title":"\t"}`); got != http.StatusBadRequest {
			t.Errorf("a blanked title: status %d", got)
		}
		if p.Merges()[0].Title != "m" {
			t.Errorf("the title is %q", p.Merges()[0].Title)
		}
	}
}
