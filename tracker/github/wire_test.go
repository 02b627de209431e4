package github

import (
	"testing"

	"github.com/ralph-pool/ralph/tracker/forge"
)

// FuzzAnswers: whatever an answer is, what ralph takes from it has the parts that ralph goes by.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"login":"ada","type":"User"}`, `null`, `{}`, `[null]`, `[{}]`, `{"id":"twelve","number":{},"user":[]}`,
		`{"number":1,"state":"open","labels":["x",{"name":"y"}],"user":{"id":0}}`, `{"number":1,"state":"closed","labels":[null],"user":null}`,
		`{"id":1,"body":"x","created_at":"2026-01-01T00:00:00Z","user":{"id":2,"login":"eve"}}`,
		`{"event":"labeled","created_at":"2026-01-01T00:00:00Z","actor":null,"label":{"name":""}}`,
		`{"number":1,"html_url":"u","state":"open","head":{"ref":"h","sha":"s"},"base":{"ref":"b"},"labels":[]}`,
		`{"repository":{"issue":{"lastEditedAt":null}}}`, `{"repository":{"issue":{}}}`, `{"m":{"pullRequest":{"isDraft":false}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var who user
		if forge.Decode(body, &who) == nil && (who.ID <= 0 || who.Login == "") {
			t.Errorf("an account without id or name: %+v", who)
		}
		var i issue
		if forge.Decode(body, &i) == nil {
			if i.Number <= 0 || i.Labels == nil || (i.User != nil && i.User.ID == 0) {
				t.Errorf("an issue without number, labels or author's id: %+v", i)
			}
			for _, l := range i.Labels {
				if l.Name == "" {
					t.Errorf("a label without a name: %+v", i)
				}
			}
		}
		var c comment
		if forge.Decode(body, &c) == nil && (c.ID <= 0 || c.CreatedAt.IsZero() || (c.User != nil && c.User.ID == 0)) {
			t.Errorf("a comment without id, time or author's id: %+v", c)
		}
		var e event
		if forge.Decode(body, &e) == nil && (e.Event == labelPut && e.Label.Name == "" || e.CreatedAt.IsZero() || (e.Actor != nil && e.Actor.ID == 0)) {
			t.Errorf("an event without label, time or actor's id: %+v", e)
		}
		var p pull
		if forge.Decode(body, &p) == nil && (p.Number <= 0 || p.HTMLURL == "" || p.Head.Ref == "" || p.Head.SHA == "") {
			t.Errorf("a request without number, address or head: %+v", p)
		}
		var d drafted
		if forge.Decode(body, &d) == nil && len(d) != 1 {
			t.Errorf("a mutation that says nothing: %+v", d)
		}
		var h bodyHistory
		if forge.Decode(body, &h) == nil && (h.Repository == nil || h.Repository.Issue == nil) {
			t.Errorf("the edits of no issue: %+v", h)
		}
	})
}
