package session_test

import (
	"testing"
	"time"

	"github.com/ralph-pool/ralph/loop/session"
)

func TestResume(t *testing.T) {
	t.Parallel()
	ended := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := map[string]struct {
		policy session.Policy
		change func(*session.Last)
		after  time.Duration
		want   bool
	}{
		"as it was":              {want: true},
		"said so":                {policy: session.Auto, want: true},
		"never":                  {policy: session.Never},
		"no session":             {change: func(l *session.Last) { l.ID = "" }},
		"another agent":          {change: func(l *session.Last) { l.Agent = "b" }},
		"another model":          {change: func(l *session.Last) { l.Model = "n" }},
		"killed":                 {change: func(l *session.Last) { l.Intact = false }},
		"as much as may be":      {change: func(l *session.Last) { l.Context = session.MaxContext }, after: session.Cached, want: true},
		"nobody knows how much":  {change: func(l *session.Last) { l.Context = 0 }},
		"too much":               {change: func(l *session.Last) { l.Context = session.MaxContext + 1 }},
		"not in the cache":       {change: func(l *session.Last) { l.Context = session.MaxContextCold + 1 }, after: session.Cached + 1},
		"not in the cache, less": {change: func(l *session.Last) { l.Context = session.MaxContextCold }, after: session.Cached + 1, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last := session.Last{ID: "s", Agent: "a", Model: "m", Intact: true, Context: 10, Ended: ended}
			if test.change != nil {
				test.change(&last)
			}
			if got := test.policy.Resume(last, "a", "m", ended.Add(test.after)); (got == "s") != test.want || got != "" && got != "s" {
				t.Errorf("session %q, want %v", got, test.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, p := range []session.Policy{"", session.Auto, session.Never} {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
	if session.Policy("always").Validate() == nil {
		t.Error("always is accepted")
	}
}
