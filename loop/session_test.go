package loop

import (
	"testing"
	"time"
)

func TestSession(t *testing.T) {
	t.Parallel()
	ended := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := map[string]struct {
		policy Resume
		change func(*lastSession)
		after  time.Duration
		want   bool
	}{
		"as it was":              {want: true},
		"said so":                {policy: ResumeAuto, want: true},
		"never":                  {policy: ResumeNever},
		"no session":             {change: func(l *lastSession) { l.ID = "" }},
		"another agent":          {change: func(l *lastSession) { l.Agent = "b" }},
		"another model":          {change: func(l *lastSession) { l.Model = "n" }},
		"killed":                 {change: func(l *lastSession) { l.Intact = false }},
		"as much as may be":      {change: func(l *lastSession) { l.Context = maxContext }, after: cacheLifetime, want: true},
		"nobody knows how much":  {change: func(l *lastSession) { l.Context = 0 }},
		"too much":               {change: func(l *lastSession) { l.Context = maxContext + 1 }},
		"not in the cache":       {change: func(l *lastSession) { l.Context = maxContextCold + 1 }, after: cacheLifetime + 1},
		"not in the cache, less": {change: func(l *lastSession) { l.Context = maxContextCold }, after: cacheLifetime + 1, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last := lastSession{ID: "s", Agent: "a", Model: "m", Intact: true, Context: 10, Ended: ended}
			if test.change != nil {
				test.change(&last)
			}
			if got := test.policy.session(last, "a", "m", ended.Add(test.after)); (got == "s") != test.want || got != "" && got != "s" {
				t.Errorf("session %q, want %v", got, test.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, p := range []Resume{"", ResumeAuto, ResumeNever} {
		if err := p.validate(); err != nil {
			t.Error(err)
		}
	}
	if Resume("always").validate() == nil {
		t.Error("always is accepted")
	}
}
