package gateway

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// said returns an answer of a service.
func said(model string, in, out int) string {
	return fmt.Sprintf(`{"type":"message","model":%q,"content":[],"usage":{"input_tokens":%d,"output_tokens":%d}}`, model, in, out)
}

// pass sends an answer through the meter.
func pass(t *testing.T, m *Meter, body string) {
	t.Helper()
	x := ask(t, m)
	if _, err := io.WriteString(x.Answer(200, "application/json"), body); err != nil {
		t.Error(err)
	}
	x.End()
}

// ask makes a request that the meter admits.
func ask(t *testing.T, m *Meter) egress.Exchange {
	t.Helper()
	x, err := m.admit(t.Context(), "POST", "/v1/messages")
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Concurrent answers add up, and the service gets no more requests once the budget is used up.
func TestMeter(t *testing.T) {
	t.Parallel()
	m := NewMeter(Network{}, "r")
	m.Limit(loop.Budget{Tokens: 100})
	var passing sync.WaitGroup
	for range 9 {
		passing.Go(func() { pass(t, m, said("no-such-model", 10, 1)) })
	}
	passing.Wait()
	if got, want := m.Used(), (agents.Usage{Input: 90, Output: 9, Unpriced: 99}); got != want {
		t.Errorf("used %+v, want %+v", got, want)
	}
	select {
	case <-m.Changed():
	default:
		t.Error("nobody was told")
	}
	pass(t, m, said("no-such-model", 1, 0))
	if _, err := m.admit(t.Context(), "POST", "/v1/messages"); err == nil {
		t.Error("nothing is left, and a request is let through")
	}
	if got := m.Notices(); len(got) != 0 {
		t.Errorf("without a cost budget it warns %q", got)
	}
}

// A model with an unknown price is mentioned once.
func TestMeterPrices(t *testing.T) {
	t.Parallel()
	own, err := ledger.ParseOwn([]string{"own-model=2/4"})
	if err != nil {
		t.Fatal(err)
	}
	m := NewMeter(Network{Prices: own}, "r")
	m.Limit(loop.Budget{CostUSD: 50})
	pass(t, m, said("claude-sonnet-4-5-20250929", 1_000_000, 0))
	cost := m.Used().CostUSD
	if cost <= 0 || len(m.Notices()) != 0 {
		t.Errorf("a known model costs %v", cost)
	}
	pass(t, m, said("no-such-model", 1, 0))
	if got := m.Notices(); len(got) != 1 || !strings.Contains(got[0].Text, "no-such-model") || len(m.Notices()) != 0 {
		t.Errorf("it warns %q", got)
	}
	pass(t, m, said("claude-sonnet-4-5-20250929", 1_000_000, 0))
	pass(t, m, said("own-model", 500_000, 500_000))
	if got := m.Used().CostUSD; got != 2*cost+3 {
		t.Errorf("twice the same and a model of one's own cost %v, want twice %v and 3", got, cost)
	}
}

// A write for an hour costs more. A service tier without a price is mentioned: it is neither free nor at the usual price.
func TestMeterTerms(t *testing.T) {
	t.Parallel()
	m := NewMeter(Network{}, "r")
	m.Limit(loop.Budget{CostUSD: 50})
	pass(t, m, `{"model":"claude-opus-4-6","usage":{"input_tokens":0,"cache_creation_input_tokens":1000000,"cache_creation":{"ephemeral_1h_input_tokens":1000000},"service_tier":"standard"}}`)
	if got := m.Used().CostUSD; got != 10 || len(m.Notices()) > 0 {
		t.Errorf("it costs %v", got)
	}
	pass(t, m, `{"model":"claude-opus-4-6","usage":{"input_tokens":1000000,"service_tier":"priority"}}`)
	if got := m.Used().CostUSD; got != 10 || !m.Requests().Unpriced {
		t.Errorf("it costs %v; %+v", got, m.Requests())
	}
	if got := m.Notices(); len(got) != 1 || !strings.Contains(got[0].Text, "claude-opus-4-6 in service tier priority") {
		t.Errorf("it warns %q", got)
	}
}

// The meter reports whether answers have passed, and whether the cost of all is known.
func TestMeterPassed(t *testing.T) {
	t.Parallel()
	m := NewMeter(Network{}, "r")
	for _, c := range []struct {
		name string
		pass func()
		want loop.MeteredRequests
	}{
		{"nothing", func() {}, loop.MeteredRequests{}},
		{"refused", func() { x := ask(t, m); x.Answer(401, ""); x.End() }, loop.MeteredRequests{Answered: true, UsedNothing: true}},
		{"not reached", func() { ask(t, m).End() }, loop.MeteredRequests{Answered: true, UsedNothing: true}},
		{"cut off", func() {
			x := ask(t, m)
			_, _ = io.ReadAll(x.Request(io.NopCloser(strings.NewReader("x"))))
			x.End()
		}, loop.MeteredRequests{Answered: true}},
		{"refused and answered", func() {
			x := ask(t, m)
			x.Answer(429, "")
			x.End()
			x = ask(t, m)
			x.Answer(200, "")
			x.End()
		}, loop.MeteredRequests{Answered: true}},
		{"a known model", func() { pass(t, m, said("claude-haiku-4-5", 5, 1)) }, loop.MeteredRequests{Answered: true, LargestRequest: 6}},
		{"two models", func() {
			pass(t, m, said("no-such-model", 3, 1))
			pass(t, m, said("claude-haiku-4-5", 5, 1))
		}, loop.MeteredRequests{Answered: true, Unpriced: true, LargestRequest: 6}},
		{"its name behind its usage", func() { pass(t, m, `{"usage":{"input_tokens":5},"model":"claude-haiku-4-5"}`) }, loop.MeteredRequests{Answered: true, LargestRequest: 5}},
	} {
		m.Limit(loop.Budget{})
		if c.pass(); m.Requests() != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, m.Requests(), c.want)
		}
	}
	m.Limit(loop.Budget{})
	x, on := ask(t, m), ask(t, m)
	x.Answer(429, "")
	x.End()
	if m.Requests().UsedNothing {
		t.Error("a request that is on is taken for free")
	}
	on.Answer(429, "")
	on.End()
	if !m.Requests().UsedNothing {
		t.Error("nothing was used, and it is not free")
	}
	if got := m.Used().Unpriced; got != 4 {
		t.Errorf("%d tokens have no price, those of one answer do not", got)
	}
}

// Usage that only a reviewer reports counts for the run, but not for the caps of all runs.
func TestMeterOfAReviewer(t *testing.T) {
	t.Parallel()
	account := ledger.NewAccount(ledger.Caps{Day: loop.Budget{Tokens: 100}}, &journaltest.Memory{}, "")
	m := NewMeter(Network{Account: account}, "r")
	pass(t, m, said("m", 9, 1))
	m.Add(agents.Usage{Input: 500}, agents.Usage{Input: 490})
	if used := m.Used(); used.Input != 509 || m.SharedLimitError(t.Context(), used) != nil {
		t.Errorf("used %+v; all runs: %v", used, m.SharedLimitError(t.Context(), used))
	}
	x := ask(t, m)
	x.End()
	beside := NewMeter(Network{Account: account}, "r").IncludeMeter(m)
	if err := beside.SharedLimitError(t.Context(), agents.Usage{Input: 70}); err != nil {
		t.Error(err)
	}
	if beside.SharedLimitError(t.Context(), agents.Usage{Input: 80}) == nil {
		t.Error("100 tokens are spent of 100")
	}
}

// Closing the connection does not avoid the count: the request and the received part of the answer count, at the price of
// the model that answered before.
func TestMeterEstimates(t *testing.T) {
	t.Parallel()
	own, err := ledger.ParseOwn([]string{"m=1/1"})
	if err != nil {
		t.Fatal(err)
	}
	m := NewMeter(Network{Prices: own}, "r")
	pass(t, m, said("m", 10, 1))
	send := func(size, status int, body string) {
		t.Helper()
		x := ask(t, m)
		if _, err := io.ReadAll(x.Request(io.NopCloser(strings.NewReader(strings.Repeat("x", size))))); err != nil {
			t.Fatal(err)
		}
		if status > 0 {
			_, _ = io.WriteString(x.Answer(status, "text/event-stream"), body)
		}
		x.End()
	}
	send(400, 0, "")
	send(400, 200, strings.Repeat("data: x\n", 10))
	send(400, 529, "overloaded")
	ask(t, m).End() // the service received nothing
	got, want := m.Used(), agents.Usage{Input: 10 + 100 + 100, Output: 1 + 20, Estimated: 220}
	want.CostUSD = got.CostUSD
	if got != want || got.CostUSD < 230e-6 || got.CostUSD > 232e-6 {
		t.Errorf("used %+v, want %+v", got, want)
	}
	if x, err := m.admit(t.Context(), "POST", "/v1/messages/count_tokens"); x != nil || err != nil {
		t.Errorf("what costs nothing is followed: %v, %v", x, err)
	}
}
