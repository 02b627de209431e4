package github

import (
	"slices"
	"testing"

	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// FuzzAnswers: an accepted answer has the fields on which ralph bases decisions.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"login":"ada","type":"User"}`, `null`, `{}`, `[null]`, `[{}]`, `{"id":"twelve","number":{},"user":[]}`,
		`{"number":1,"state":"open","labels":[{"name":"y"}],"user":{"id":0}}`, `{"number":1,"state":"closed","labels":[null],"user":null}`,
		`{"id":1,"body":"x","created_at":"2026-01-01T00:00:00Z","user":{"id":2,"login":"eve"}}`,
		`{"event":"labeled","created_at":"2026-01-01T00:00:00Z","actor":null,"label":{"name":""}}`,
		`{"number":1,"html_url":"u","state":"open","head":{"ref":"h","sha":"s"},"base":{"ref":"b"},"labels":[]}`,
		`{"repository":{"issue":{"lastEditedAt":null}}}`, `{"repository":{"issue":{}}}`, `{"m":{"pullRequest":{"isDraft":false}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if u, err := transport.Decode(body, completeUser); err == nil && (u.GetID() <= 0 || u.GetLogin() == "") {
			t.Errorf("an account without id or name: %+v", u)
		}
		if i, err := transport.Decode(body, completeIssue); err == nil {
			if i.GetNumber() <= 0 || i.Labels == nil || i.User != nil && i.User.GetID() == 0 {
				t.Errorf("an issue without number, labels or author's id: %+v", i)
			}
			if slices.Contains(i.labels(), "") {
				t.Errorf("a label without a name: %+v", i)
			}
		}
		c, err := transport.Decode(body, completeComment)
		if err == nil && (c.GetID() <= 0 || c.GetCreatedAt().IsZero() || c.User != nil && c.User.GetID() == 0) {
			t.Errorf("a comment without id, time or author's id: %+v", c)
		}
		e, err := transport.Decode(body, completeEvent)
		if err == nil && (e.GetEvent() == labelSet && e.GetLabel().GetName() == "" || e.GetCreatedAt().IsZero() || e.Actor != nil && e.Actor.GetID() == 0) {
			t.Errorf("an event without label, time or actor's id: %+v", e)
		}
		p, err := transport.Decode(body, completePull)
		if err == nil && (p.GetNumber() <= 0 || p.GetHTMLURL() == "" || p.GetHead().GetRef() == "" || p.GetHead().GetSHA() == "") {
			t.Errorf("a request without number, address or head: %+v", p)
		}
		if d, err := transport.Decode(body, completeDraft); err == nil && len(*d) != 1 {
			t.Errorf("a mutation that says nothing: %+v", d)
		}
		if h, err := transport.Decode(body, completeHistory); err == nil && (h.Repository == nil || h.Repository.Issue == nil) {
			t.Errorf("the edits of no issue: %+v", h)
		}
	})
}
