package pool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// mergingForge is a forge that merges requests by itself.
type mergingForge struct {
	*forge
	calls   []string // the calls that it has received
	refuses string
	err     error
}

func (f *mergingForge) MergeLater(_ context.Context, head, commit string) (string, error) {
	f.calls = append(f.calls, "merge "+head+" "+commit)
	return f.refuses, f.err
}

func (f *mergingForge) KeepOpen(_ context.Context, head string) error {
	f.calls = append(f.calls, "keep "+head)
	return nil
}

// The forge is asked to merge exactly the checked commits, and nothing that a person has to look at.
func TestAutoMerge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gate, agent, refuses, warns string
		calls                       string
		merging, draft              bool
	}{
		"success":           {gate: "true", calls: "merge", merging: true},
		"the forge refuses": {gate: "true", refuses: "auto-merge is off: turn it on", calls: "merge", warns: "auto-merge is off: turn it on"},
		"a draft":           {gate: "! test -f a.txt", calls: "keep", draft: true},
		"checks changed": {gate: "sh check.sh", agent: `cat >/dev/null; echo "test -f README" > check.sh; git add -A; git commit -qm work` + done,
			calls: "keep", warns: "a person has to look"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			if c.agent != "" {
				f.Config = f.config(c.agent)
			}
			f.write("check.sh", "true\n")
			f.commit("check")
			f.withRemote()
			host := &mergingForge{forge: &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}, refuses: c.refuses}
			f.Config.Run.Tracker, f.Config.Run.Publish, f.Config.Run.Requests.AutoMerge = host, journal.PublishRequest, true
			f.Config.Run.Gate, f.Config.Run.Protected, f.Config.Run.Retry.MaxAttempts = lines(c.gate), nil, 1
			f.issue("a")
			r := f.one()
			if r.Request.Merging != c.merging || r.Request.Draft != c.draft || r.Request.URL == "" {
				t.Fatalf("%+v, %+v, %q", r.Verdict, r.Request, r.Warnings)
			}
			want := []string{c.calls + " ralph/a"}
			if c.calls == "merge" {
				want[0] += " " + r.Tip
			}
			if !slices.Equal(host.calls, want) {
				t.Errorf("it was asked for %q, want %q", host.calls, want)
			}
			text := fmt.Sprint(r.Warnings)
			if !strings.Contains(text, c.warns) || c.warns == "" && strings.Contains(text, "the forge") {
				t.Errorf("warnings: %s", text)
			}
			if says := strings.Contains(f.text("a"), "once its checks have passed"); says != c.merging {
				t.Errorf("the report:\n%s", f.text("a"))
			}
		})
	}
}

// If the forge is unavailable, the next sweep asks it again, without another run of the agent.
func TestAutoMergeOfAForgeThatIsAway(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.withRemote()
	host := &mergingForge{forge: &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}, err: &tracker.UnavailableError{Err: errors.New("away")}}
	f.Config.Run.Tracker, f.Config.Run.Publish, f.Config.Run.Requests.AutoMerge = host, journal.PublishRequest, true
	f.issue("a")
	if r := f.one(); !r.Ended.IsZero() || r.Published != "" {
		t.Fatalf("%+v", r)
	}
	host.err = nil
	if r := f.one(); !r.Request.Merging || r.Verdict.Outcome != journal.Succeeded || len(f.runs("a")) != 1 {
		t.Errorf("%+v", r)
	}
	f.clean()
}
