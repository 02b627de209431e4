package hold

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
)

func record(id string, final bool) journal.Record {
	r := journal.Record{Run: journal.Run{ID: id, Kind: journal.KindIssue, Hash: "h", Attempt: 1}}
	r.Tip, r.Verdict = "tip", journal.Verdict{Outcome: journal.Succeeded, Final: final}
	return r
}

// shared makes the claim belong to another run.
func shared(c *Config) { c.Shared = true }

// A run announces its outcome once, and then knows that it did.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c, _ := s.run("r1", nil)
	if _, ok := c.Outcome(); ok {
		t.Error("something is pending")
	}
	for _, text := range []string{"first", "second"} {
		if err := c.Announce(t.Context(), record("r1", true), report.Pending{Report: text}); err != nil {
			t.Fatal(err)
		}
	}
	d, ok := c.Outcome()
	var left report.Pending
	if err := json.Unmarshal(d.Pending, &left); err != nil || !ok || left.Report != "first" || d.Tip != "tip" || d.Outcome != string(journal.Succeeded) {
		t.Errorf("%t, %+v, %v", ok, d, err)
	}
	other := New(c.ref, Config{Run: "r2", Stop: c.cfg.Stop})
	if _, ok := other.Outcome(); ok {
		t.Error("it is pending for another run")
	}
	c, _ = newSite(t).run("r1", shared)
	if err := c.Announce(t.Context(), record("r1", true), left); err != nil || c.ref.Record().Pending != nil {
		t.Errorf("a shared claim says %+v, %v", c.ref.Record(), err)
	}
}

func TestPush(t *testing.T) {
	t.Parallel()
	c, _ := newSite(t).run("r1", nil)
	var got tree
	if err := c.Push(t.Context(), &got, record("r1", true), nil); err != nil || got.claim != c.ref || got.record.Passed == nil || got.record.Pending != nil {
		t.Errorf("more is to be published: %+v, %v", got, err)
	}
	if err := c.Push(t.Context(), &got, record("r1", true), &report.Pending{}); err != nil || got.claim != c.ref || got.record.Pending == nil {
		t.Errorf("nothing more is to be published: %+v, %v", got, err)
	}
	c, _ = newSite(t).run("r1", shared)
	if err := c.Push(t.Context(), &got, record("r1", true), &report.Pending{}); err != nil || got.claim != nil {
		t.Errorf("with a shared claim: %+v, %v", got, err)
	}
}

// A run that has finished its claim may act although the claim cannot be renewed. It has not lost the claim.
func TestFinished(t *testing.T) {
	t.Parallel()
	for name, finish := range map[string]func(*Claim, context.Context, journal.Record) error{
		"push": func(c *Claim, ctx context.Context, r journal.Record) error { return c.PushAndFinish(ctx, &tree{}, r) },
		"end":  (*Claim).End,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			c, stop := s.run("r1", func(c *Config) { c.TTL = 3 * time.Millisecond })
			if err := finish(c, t.Context(), record("r1", true)); err != nil {
				t.Fatal(err)
			}
			s.expire()
			if !c.MayAct(t.Context()) || c.Heartbeat(t.Context()) {
				t.Error("it may not act")
			}
			if err := c.End(t.Context(), record("r1", true)); err != nil {
				t.Error(err)
			}
			s.expect(c, stop, true, false)
			if next, _ := s.run("r2", nil); !next.ref.Record().Finished {
				t.Errorf("the record says %+v", next.ref.Record())
			}
		})
	}
}

// A push proves that the claim is held only if it moves branch and claim in one step.
func TestPushWithoutTheClaimIsFenced(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){"shared": shared, "prompt": func(c *Config) { c.Kind = journal.KindPrompt }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			c, stop := s.run("r1", change)
			s.steal()
			if c.MayPublish(t.Context(), true) {
				t.Error("it may publish")
			}
			s.expect(c, stop, false, false)
		})
	}
}

func TestSpend(t *testing.T) {
	t.Parallel()
	c, _ := newSite(t).run("r1", nil)
	if err := c.Spend(t.Context(), record("r1", false).Run, agents.Usage{CostUSD: 3}); err != nil || c.ref.Record().Spend.CostUSD != 3 {
		t.Errorf("%+v, %v", c.ref.Record(), err)
	}
}

func TestEnd(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change   func(*Config)
		final    bool
		run      string // in the record that remains
		finished bool
		taken    bool
	}{
		"issue":        {run: "r1"},
		"final":        {final: true, run: "r1", finished: true},
		"prompt":       {change: func(c *Config) { c.Kind = journal.KindPrompt }},
		"shared":       {change: shared, run: "r1", taken: true},
		"shared final": {change: shared, final: true, run: "r1", finished: true, taken: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			c, _ := s.run("r1", tt.change)
			if err := c.End(t.Context(), record("r1", tt.final)); err != nil {
				t.Fatal(err)
			}
			if tt.taken {
				if err := c.Reserve(t.Context(), ttl); err != nil || !c.MayPublish(t.Context(), false) {
					t.Errorf("another run's claim was given up: %v", err)
				}
				s.expire()
			}
			next, _ := s.run("r2", nil)
			if r := next.ref.Record(); r.Run != tt.run || r.Finished != tt.finished {
				t.Errorf("the record says %+v", r)
			}
		})
	}
}
