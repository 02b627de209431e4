package gateway

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/ralph-pool/ralph/agents"
)

// A budget in one unit needs as few bookings as one in both.
func TestBookingOfOneUnit(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]agents.Usage{"tokens": {Input: 100}, "cost": {CostUSD: 1}, "both": {Input: 100, CostUSD: 1}} {
		written := 0
		b := NewBooking(agents.Usage{}, step, func(context.Context, agents.Usage) error { written++; return nil })
		var used agents.Usage
		for range 20 {
			if err := b.begin(t.Context(), used); err != nil {
				t.Fatal(err)
			}
			one := agents.Usage{Input: 4, Output: 1, CostUSD: 0.05}
			b.end(one)
			used = used.Add(one)
		}
		if written > 2 {
			t.Errorf("%s: written %d times for a step that is used up once", name, written)
		}
		got := b.AtLeast(agents.Usage{Input: 3, CacheRead: 7, CostUSD: 0.01})
		if got.CacheRead != 7 || got.Tokens() < max(3, step.Input) || got.CostUSD < max(0.01, step.CostUSD) {
			t.Errorf("%s: others count %+v for a step of %+v", name, got, step)
		}
	}
}

// Requests are booked before they pass, also concurrent ones and those of another meter; most need no new booking.
func TestBooking(t *testing.T) {
	t.Parallel()
	var sums []int64
	var refuse error
	b := NewBooking(agents.Usage{Input: 5}, agents.Usage{Input: 10}, func(_ context.Context, sum agents.Usage) error {
		if refuse == nil {
			sums = append(sums, sum.Tokens())
		}
		return refuse
	})
	m := NewMeter(Network{}, "r")
	m.Book(b)
	booked := func(when string, want ...int64) {
		t.Helper()
		if !slices.Equal(sums, want) {
			t.Fatalf("%s, booked: %v, want %v", when, sums, want)
		}
	}
	pass(t, m, said("m", 3, 1))
	booked("at the first request", 15)
	x := ask(t, m)
	booked("where one like the first fits", 15)
	y := ask(t, NewMeter(Network{}, "r").IncludeMeter(m))
	booked("where two do not fit", 15, 27)
	for _, e := range []interface{ End() }{x, y} {
		e.End()
	}
	pass(t, m, said("m", 18, 2))
	booked("where the answer was not expected to be so large", 15, 27)
	if got := b.AtLeast(agents.Usage{Input: 20}).Tokens(); got != 27 {
		t.Errorf("others count %d, want what was booked", got)
	}
	if got := b.AtLeast(agents.Usage{Input: 29}).Tokens(); got != 29 {
		t.Errorf("others count %d, want what was used", got)
	}
	refuse = errors.New("lost")
	if _, err := m.admit(t.Context(), nil, "POST", "/v1/messages", nil); !errors.Is(err, refuse) {
		t.Errorf("a request that could not be booked: %v", err)
	}
	refuse = nil
	pass(t, m, said("m", 1, 0))
	booked("after a large answer", 15, 27, 5+24+20+10)
}
