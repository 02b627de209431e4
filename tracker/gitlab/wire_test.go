package gitlab

import (
	"testing"

	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// FuzzAnswers: an accepted answer has the fields on which ralph bases decisions.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"username":"ada","state":"active"}`, `null`, `{}`, `[null]`, `[{}]`,
		`{"iid":1,"project_id":7,"state":"opened","labels":["x"],"author":{"id":0}}`,
		`{"iid":1,"project_id":7,"state":"closed","labels":[],"author":null}`,
		`{"id":1,"body":"x","created_at":"2026-01-01T00:00:00Z","author":{"id":2,"username":"eve"},"system":false}`,
		`{"id":1,"action":"add","created_at":"2026-01-01T00:00:00Z","user":null,"label":{"name":"x"}}`,
		`{"iid":1,"web_url":"u","state":"opened","source_branch":"s","target_branch":"t","source_project_id":7,"target_project_id":7,"labels":[]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if u, err := transport.Decode(body, completeUser); err == nil && (u.ID <= 0 || u.Username == "") {
			t.Errorf("an account without id or name: %+v", u)
		}
		if i, err := transport.Decode(body, completeIssue); err == nil && (i.IID <= 0 || i.Labels == nil || i.Author != nil && i.Author.ID <= 0) {
			t.Errorf("an issue without number, labels or author's id: %+v", i)
		}
		if n, err := transport.Decode(body, completeNote); err == nil && (n.ID <= 0 || n.CreatedAt == nil || n.Author.Username != "" && n.Author.ID == 0) {
			t.Errorf("a note without id, time or author's id: %+v", n)
		}
		if e, err := transport.Decode(body, completeEvent); err == nil && (e.ID <= 0 || e.Action == "" || e.User.Username != "" && e.User.ID == 0) {
			t.Errorf("an event without id, action or actor's id: %+v", e)
		}
		m, err := transport.Decode(body, completeMerge)
		if err == nil && (m.IID <= 0 || m.WebURL == "" || m.SourceBranch == "" || fromProject(m) && m.SourceProjectID <= 0) {
			t.Errorf("a request without number, address or branch, or of no project: %+v", m)
		}
	})
}
