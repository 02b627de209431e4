package gitlab

import (
	"testing"

	"github.com/ralph-pool/ralph/tracker/forge"
)

// FuzzAnswers: whatever an answer is, what ralph takes from it has the parts that ralph goes by.
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
		var who user
		if forge.Decode(body, &who) == nil && (who.ID <= 0 || who.Username == "") {
			t.Errorf("an account without id or name: %+v", who)
		}
		var i issue
		if forge.Decode(body, &i) == nil && (i.IID <= 0 || i.Labels == nil || (i.Author != nil && i.Author.ID <= 0)) {
			t.Errorf("an issue without number, labels or author's id: %+v", i)
		}
		var n note
		if forge.Decode(body, &n) == nil && (n.ID <= 0 || n.Created.IsZero() || (n.Author != nil && n.Author.ID <= 0)) {
			t.Errorf("a note without id, time or author's id: %+v", n)
		}
		var e labelEvent
		if forge.Decode(body, &e) == nil && (e.ID <= 0 || e.Action == "" || (e.User != nil && e.User.ID <= 0)) {
			t.Errorf("an event without id, action or actor's id: %+v", e)
		}
		var m merge
		if forge.Decode(body, &m) == nil && (m.IID <= 0 || m.WebURL == "" || m.Source == "" || (m.own() && m.SourceProject <= 0)) {
			t.Errorf("a request without number, address or branch, or of no project: %+v", m)
		}
		var may member
		if forge.Decode(body, &may) == nil && may.State == "" {
			t.Errorf("a membership without a state: %+v", may)
		}
	})
}
