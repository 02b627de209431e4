package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

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
	answered(ask(t, m), 200, body)
}

// answered lets the service answer a request, and the agent read it to the end.
func answered(x egress.Exchange, status int, body string) {
	_, _ = io.Copy(io.Discard, answering(x, status, nil, strings.NewReader(body)))
	x.End()
}

// answering lets the service begin an answer, and returns the body that the agent gets.
func answering(x egress.Exchange, status int, header http.Header, body io.Reader) io.ReadCloser {
	return x.Answer(&http.Response{StatusCode: status, Header: header, Body: io.NopCloser(body)})
}

// ask makes a request that the meter admits.
func ask(t *testing.T, m *Meter) egress.Exchange {
	t.Helper()
	return askFor(t.Context(), t, m, "{}")
}

// askFor makes a request with this body that the meter admits, and sends it.
func askFor(ctx context.Context, t *testing.T, m *Meter, body string) egress.Exchange {
	t.Helper()
	x, err := m.admit(ctx, nil, "POST", "/v1/messages", []byte(body))
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
	if _, err := m.admit(t.Context(), nil, "POST", "/v1/messages", nil); err == nil {
		t.Error("nothing is left, and a request is let through")
	}
	if got := m.Notices(); len(got) != 0 {
		t.Errorf("without a cost budget it warns %q", got)
	}
}

// A model with an unknown price counts as the dearest one if a budget limits the cost.
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
	if got := m.Notices(); len(got) != 1 || !strings.Contains(got[0].Text, "no-such-model") {
		t.Errorf("it warns %q", got)
	}
	assumed := m.Used().CostUSD - cost
	pass(t, m, said("claude-sonnet-4-5-20250929", 1_000_000, 0))
	pass(t, m, said("own-model", 500_000, 500_000))
	if got := m.Used().CostUSD; assumed <= 0 || math.Abs(got-(2*cost+assumed+3)) > 1e-9 {
		t.Errorf("twice the same, %v and a model of one's own cost %v, want twice %v, and 3", assumed, got, cost)
	}
}

// A write for an hour costs more. A service tier without a price is mentioned, and costs at least the usual price.
func TestMeterTerms(t *testing.T) {
	t.Parallel()
	m := NewMeter(Network{}, "r")
	m.Limit(loop.Budget{CostUSD: 50})
	pass(t, m, `{"model":"claude-opus-4-6","usage":{"input_tokens":0,"cache_creation_input_tokens":1000000,"cache_creation":{"ephemeral_1h_input_tokens":1000000},"service_tier":"standard"}}`)
	if got := m.Used().CostUSD; got != 10 || len(m.Notices()) > 0 {
		t.Errorf("it costs %v", got)
	}
	pass(t, m, `{"model":"claude-opus-4-6","usage":{"input_tokens":1000000,"service_tier":"priority"}}`)
	if got := m.Used(); got.CostUSD != 15 || got.Estimated != 1_000_000 {
		t.Errorf("used %+v", got)
	}
	if got := m.Notices(); len(got) != 1 || !strings.Contains(got[0].Text, "claude-opus-4-6 in service tier priority") {
		t.Errorf("it warns %q", got)
	}
}

// A request reserves the price of the dearest tier that it names, or that the service has chosen for the last answer.
func TestMeterReservesTheTier(t *testing.T) {
	t.Parallel()
	const request, answer = `{"model":"gpt-5.4","max_tokens":1000000,"service_tier":"%s"}`, `{"model":"gpt-5.4","service_tier":"%s","usage":{"input_tokens":1}}`
	m := NewMeter(Network{}, "r")
	reserved := func(tier string) float64 {
		x := askFor(t.Context(), t, m, fmt.Sprintf(request, tier))
		defer x.End()
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.reserved.CostUSD
	}
	usual := reserved("default")
	for tier, want := range map[string]float64{"auto": 1, "flex": 1, "unknown": 1, "priority": 2} {
		if got := reserved(tier); math.Abs(got/usual-want) > 1e-3 {
			t.Errorf("%s: %v, want %v times %v", tier, got, want, usual)
		}
	}
	for tier, want := range map[string]float64{"default": 1, "priority": 2} {
		pass(t, m, fmt.Sprintf(answer, tier))
		if got := reserved("auto"); math.Abs(got/usual-want) > 1e-3 {
			t.Errorf("after %s: %v, want %v times %v", tier, got, want, usual)
		}
	}
	m = NewMeter(Network{}, "r")
	claude := func(region string) float64 {
		x := askFor(t.Context(), t, m, `{"model":"claude-opus-4-6","max_tokens":1000000,"inference_geo":"`+region+`"}`)
		defer x.End()
		return m.reserved.CostUSD
	}
	usual = claude("global")
	if got := claude("us"); math.Abs(got/usual-1.1) > 1e-3 {
		t.Errorf("in a region: %v, want 1.1 times %v", got, usual)
	}
	pass(t, m, `{"model":"claude-opus-4-6","usage":{"input_tokens":1,"inference_geo":"us"}}`)
	if got := claude("global"); math.Abs(got/usual-1.1) > 1e-3 {
		t.Errorf("after an answer from a region: %v, want 1.1 times %v", got, usual)
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
		{"refused", func() { answered(ask(t, m), 401, "") }, loop.MeteredRequests{Answered: true, UsedNothing: true, Refused: true}},
		{"not reached", func() { ask(t, m).End() }, loop.MeteredRequests{Answered: true, UsedNothing: true, Refused: true}},
		{"cut off", func() {
			x := ask(t, m)
			_, _ = io.ReadAll(x.Request(io.NopCloser(strings.NewReader("{}"))))
			x.End()
		}, loop.MeteredRequests{Answered: true, Refused: true}},
		{"refused and answered", func() {
			answered(ask(t, m), 429, "")
			answered(ask(t, m), 200, said("claude-haiku-4-5", 0, 0))
		}, loop.MeteredRequests{Answered: true}},
		{"answered and refused", func() {
			answered(ask(t, m), 200, said("claude-haiku-4-5", 0, 0))
			answered(ask(t, m), 429, "")
		}, loop.MeteredRequests{Answered: true, Refused: true}},
		{"a known model", func() { pass(t, m, said("claude-haiku-4-5", 5, 1)) }, loop.MeteredRequests{Answered: true, LargestRequest: 6}},
		{"two models", func() {
			pass(t, m, said("no-such-model", 3, 1))
			pass(t, m, said("claude-haiku-4-5", 5, 1))
		}, loop.MeteredRequests{Answered: true, Unpriced: true, LargestRequest: 6}},
		{"its name behind its usage", func() { pass(t, m, `{"usage":{"input_tokens":5},"model":"claude-haiku-4-5"}`) }, loop.MeteredRequests{Answered: true, LargestRequest: 5}},
	} {
		m.Limit(loop.Budget{})
		if c.pass(); m.Requests(agents.Link{}) != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, m.Requests(agents.Link{}), c.want)
		}
	}
	m.Limit(loop.Budget{})
	x, on := ask(t, m), ask(t, m)
	answered(x, 429, "")
	if m.Requests(agents.Link{}).UsedNothing {
		t.Error("a request that is on is taken for free")
	}
	answered(on, 429, "")
	if !m.Requests(agents.Link{}).UsedNothing {
		t.Error("nothing was used, and it is not free")
	}
	if got := m.Used().Unpriced; got != 5 {
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

// Not waiting for an answer does not avoid the count: the request, and the longest answer that it allows, count at the price of its
// model. If the service does not answer, only the request counts.
func TestMeterEstimates(t *testing.T) {
	t.Parallel()
	own, err := ledger.ParseOwn([]string{"m=1/1"})
	if err != nil {
		t.Fatal(err)
	}
	body := `{"model":"m","max_tokens":32000,"messages":[]}`
	const input = 23
	for _, tt := range []struct {
		name    string
		hangsUp bool
		answer  func(x egress.Exchange) // nil: there is none
		want    agents.Usage
	}{
		{"nobody waits", true, nil, agents.Usage{Input: input, Output: 32000, Estimated: input + 32000}},
		{"the connection breaks", false, nil, agents.Usage{Input: input, Estimated: input}},
		{"nobody reads the answer", true, func(x egress.Exchange) {
			_, _ = answering(x, 200, nil, strings.NewReader("data: x\n")).Read(make([]byte, 4))
		}, agents.Usage{Input: input, Output: 32000, Estimated: input + 32000}},
		{"the answer breaks", false, func(x egress.Exchange) {
			broken := io.MultiReader(strings.NewReader("data: x\n"), iotest.ErrReader(io.ErrUnexpectedEOF))
			_, _ = io.Copy(io.Discard, answering(x, 200, nil, broken))
		}, agents.Usage{Input: input, Output: 32000, Estimated: input + 32000}},
		{"the service says less", true, func(x egress.Exchange) {
			_, _ = answering(x, 200, nil, strings.NewReader(said("m", 3, 2))).Read(make([]byte, 1000))
		}, agents.Usage{Input: 3, Output: 2}},
		{"the service refuses", true, func(x egress.Exchange) {
			answering(x, 529, nil, http.NoBody)
		}, agents.Usage{}},
	} {
		m := NewMeter(Network{Prices: own}, "r")
		ctx, hangUp := context.WithCancelCause(t.Context())
		x := askFor(ctx, t, m, body)
		if _, err := io.ReadFull(x.Request(io.NopCloser(strings.NewReader(body))), make([]byte, len(body))); err != nil { // reads no EOF
			t.Fatal(err)
		}
		if tt.answer != nil {
			tt.answer(x)
		}
		if tt.hangsUp {
			hangUp(nil)
		}
		x.End()
		tt.want.CostUSD = float64(tt.want.Tokens()) / 1e6
		if got := m.Used(); got != tt.want {
			t.Errorf("%s: used %+v, want %+v", tt.name, got, tt.want)
		}
		hangUp(nil)
	}
	m := NewMeter(Network{}, "r")
	if ask(t, m).End(); m.Used() != (agents.Usage{}) {
		t.Errorf("the service received nothing, and %+v counts", m.Used())
	}
	if x, err := m.admit(t.Context(), nil, "POST", "/v1/messages/count_tokens", nil); x != nil || err != nil {
		t.Errorf("what costs nothing is followed: %v, %v", x, err)
	}
}

// A request that lets the service summarize the conversation reserves the summary, and its usage counts.
func TestMeterCountsSummaries(t *testing.T) {
	t.Parallel()
	m := NewMeter(Network{}, "r")
	m.Limit(loop.Budget{Tokens: 1_000_000})
	x := askFor(t.Context(), t, m, `{"max_tokens":10,"context_management":{"edits":[{"type":"compact_20260112"}]}}`)
	if got := m.reserved; got.Output < 100_000 || got.Input != 78 {
		t.Errorf("reserved %+v", got)
	}
	answered(x, 200, `{"model":"m","usage":{"input_tokens":9,"output_tokens":1,"iterations":[`+
		`{"type":"compaction","input_tokens":500000,"output_tokens":100000},{"type":"message","input_tokens":9,"output_tokens":1}]}}`)
	if got := m.Used(); got.Input != 500_009 || got.Output != 100_001 {
		t.Errorf("used %+v", got)
	}
}

// Concurrent requests exceed a budget by one answer, even if their answers are much longer than earlier ones. One that does not fit
// waits, and then nothing is left for it.
func TestParallelRequestsKeepToTheBudget(t *testing.T) {
	t.Parallel()
	own, err := ledger.ParseOwn([]string{"m=0/75"})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		budget loop.Budget
		sent   int64 // requests that the service gets
	}{
		"small":  {loop.Budget{CostUSD: 5}, 1},
		"large":  {loop.Budget{CostUSD: 20}, 3},
		"tokens": {loop.Budget{Tokens: 250_000}, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := NewMeter(Network{Prices: own}, "r")
			m.Limit(tt.budget)
			pass(t, m, said("m", 1, 1))
			var sent, atOnce, most atomic.Int64
			var all sync.WaitGroup
			for range 60 {
				all.Go(func() {
					x, err := m.admit(t.Context(), nil, "POST", "/v1/messages", []byte(`{"model":"m","max_tokens":100000}`))
					if err != nil {
						return
					}
					sent.Add(1)
					if n := atOnce.Add(1); n > most.Load() {
						most.Store(n)
					}
					<-time.After(time.Second) // by the test's clock
					atOnce.Add(-1)
					answered(x, 200, said("m", 1, 100_000))
				})
			}
			all.Wait()
			if sent.Load() != tt.sent || most.Load() > tt.sent-1 && tt.sent > 1 {
				t.Errorf("%s: the service got %d requests, %d at once; used %+v", name, sent.Load(), most.Load(), m.Used())
			}
		})
	}
}

// A request that waits for others ends when the agent hangs up.
func TestWaitingRequestIsGivenUp(t *testing.T) {
	t.Parallel()
	m := NewMeter(Network{}, "r")
	m.Limit(loop.Budget{Tokens: 1000})
	x := ask(t, m)
	gone := errors.New("hung up")
	ctx, hangUp := context.WithCancelCause(t.Context())
	hangUp(gone)
	if _, err := m.admit(ctx, nil, "POST", "/v1/messages", nil); !errors.Is(err, gone) {
		t.Error(err)
	}
	answered(x, 200, said("m", 1, 1))
	pass(t, m, said("m", 1, 1))
}
