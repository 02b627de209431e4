package parking_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/parking"
)

var noon = time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)

func at(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }

// chain returns a chain of one agent with these models.
func chain(models ...string) (c agents.Chain) {
	for _, m := range models {
		c = append(c, agents.Link{Agent: agents.Codex{}, Options: agents.Options{Model: m}})
	}
	return c
}

// failed returns an iteration in which the model failed at a minute. reset is the end of its limit; 0: unknown.
func failed(model string, class agents.Class, minute, reset int) loop.Iteration {
	f := &agents.Failure{Class: class}
	if reset > 0 {
		f.ResetAt = at(reset)
	}
	return loop.Iteration{Agent: "codex", Model: model, Ended: at(minute), Failure: f}
}

func TestTurns(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		parked string           // models that are initially parked until minute 30
		fails  []loop.Iteration // failed iterations in turn
		want   string           // the first model and its successors; "-": none
		back   int              // minute at which the first is back; -1: none
	}{
		{"one by one", "", []loop.Iteration{failed("A", agents.RateLimit, 0, 60), failed("B", agents.Auth, 1, 0), failed("C", agents.Overload, 2, 0)}, "A B C -", 7},
		{"parked ones are passed over", "A", []loop.Iteration{failed("B", agents.RateLimit, 1, 60)}, "B C", 30},
		{"all but one", "A B", []loop.Iteration{failed("C", agents.NotStarted, 1, 0)}, "C -", 30},
		{"all, and the run is wanted", "A B C", []loop.Iteration{failed("A", agents.RateLimit, 1, 45)}, "A -", 30},
		{"back in the meantime", "A", []loop.Iteration{failed("B", agents.RateLimit, 31, 60)}, "B A", 60},
		{"a run returns to nobody", "", []loop.Iteration{
			failed("A", agents.RateLimit, 0, 1), failed("B", agents.RateLimit, 5, 60), failed("C", agents.RateLimit, 6, 60),
		}, "A B C -", 60},
		{"no time", "", []loop.Iteration{failed("A", agents.Auth, 0, 0), failed("B", agents.Auth, 0, 0), failed("C", agents.NotStarted, 0, 0)}, "A B C -", -1},
	}
	for _, tt := range tests {
		c, lot := chain("A", "B", "C"), &parking.Lot{}
		var list []journal.Parked
		for _, m := range strings.Fields(tt.parked) {
			list = append(list, journal.Parked{Agent: "codex", Model: m, Until: at(30)})
		}
		lot.Load(list, nil)
		turns := lot.Turns(c)
		got := []string{turns.First(noon).Options.Model}
		now := noon
		for _, it := range tt.fails {
			now = it.Ended
			next, ok := turns.Next(it)
			if !ok {
				got = append(got, "-")
				continue
			}
			got = append(got, next.Options.Model)
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%s: %s, not %s", tt.name, text, tt.want)
		}
		want := time.Time{}
		if tt.back >= 0 {
			want = at(tt.back)
		}
		if back := lot.Back(c.Choices(), now); !back.Equal(want) {
			t.Errorf("%s: back at %s, not %s", tt.name, back, want)
		}
	}
}

// Another run starts with the first agent that no run has found unavailable. A new sweep tries agents again that wait for a
// person.
func TestLotIsShared(t *testing.T) {
	t.Parallel()
	c, lot := chain("A", "B"), &parking.Lot{}
	if _, ok := lot.Turns(c).Next(failed("A", agents.Auth, 0, 0)); !ok {
		t.Fatal("nobody goes on")
	}
	if got := lot.Turns(c).First(at(600)).Options.Model; got != "B" {
		t.Errorf("the next run starts with %s", got)
	}
	if w := lot.Waiting(c.Choices(), at(600)); len(w) != 1 || w[0].Class != agents.Auth || !w[0].Until.IsZero() {
		t.Errorf("waiting: %+v", w)
	}
	lot.Load(nil, nil)
	if got := lot.Turns(c).First(at(600)).Options.Model; got != "A" {
		t.Errorf("the next sweep starts with %s", got)
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	tests := []struct {
		refused string // seconds at which requests are refused
		now     int
		most    int
		want    int
	}{
		{"", 0, 8, 8},
		{"0", 0, 8, 4}, {"0", 59, 8, 4}, {"0", 60, 8, 5}, {"0", 239, 8, 7}, {"0", 240, 8, 8}, {"0", 9000, 8, 8},
		{"0 1 2 19", 19, 8, 4},           // one burst
		{"0 20", 20, 8, 2},               // refusals continue
		{"0 20 40 60 80 100", 100, 8, 1}, // never zero
		{"0 120", 120, 8, 3},             // half of the grown number
		{"0", 0, 1, 1}, {"0", 0, 3, 1},
		{"0", 0, 8, 4}, {"0", 0, 2, 1},
		{"60", 0, 8, 4}, // the clock was set back
	}
	for i, tt := range tests {
		var p parking.Pace
		for _, text := range strings.Fields(tt.refused) {
			var s int
			_, _ = fmt.Sscan(text, &s)
			p = p.Limited(noon.Add(time.Duration(s)*time.Second), tt.most)
		}
		if got := p.Allowed(noon.Add(time.Duration(tt.now)*time.Second), tt.most); got != tt.want {
			t.Errorf("%d: refused at %s of %d: %d allowed at %d s, not %d", i, tt.refused, tt.most, got, tt.now, tt.want)
		}
	}
}

// Each agent has its own pace, and the pace of the agent that works next counts.
func TestAllowed(t *testing.T) {
	t.Parallel()
	lot := &parking.Lot{}
	lot.SetMost(8)
	list := []agents.Choice{{Agent: "a"}, {Agent: "b"}}
	lot.Limited("a", noon)
	if got, most := lot.Allowed(list, noon); got != 4 || most != 8 {
		t.Errorf("%d allowed of %d, not 4 of 8", got, most)
	}
	for range 4 {
		if !lot.Free(list, noon) || !lot.Enter(list, noon) {
			t.Error("a run that is allowed may not begin")
		}
	}
	if lot.Free(list, noon) || lot.Enter(list, noon) {
		t.Error("a fifth run may begin")
	}
	lot.Leave()
	if !lot.Enter(list, noon) {
		t.Error("no run may begin where one has ended")
	}
	lot.Load([]journal.Parked{{Agent: "a", Until: at(60)}}, nil)
	if got, _ := lot.Allowed(list, noon); got != 8 {
		t.Errorf("%d of the next agent allowed, not 8", got)
	}
	lot.Load(nil, nil)
	lot.SetMost(0) // as when its slots go to others; four runs are running
	if allowed, _ := lot.Allowed(list, noon); allowed != 0 || lot.Capacity(list, noon) != 4 {
		t.Errorf("%d allowed and %d borne, not 0 and 4", allowed, lot.Capacity(list, noon))
	}
	if lot.Limited("b", noon); lot.Capacity(list[1:], noon) != 2 {
		t.Errorf("a refusal with four runs on leaves %d, not half of them", lot.Capacity(list[1:], noon))
	}
}
