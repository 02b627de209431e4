package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// claudes returns links of Claude Code with these models.
func claudes(models ...string) (chain agents.Chain) {
	for _, model := range models {
		chain = append(chain, agents.Link{Agent: agents.Claude{}, Options: agents.Options{Model: model}})
	}
	return chain
}

// service returns a meter, and the service of the first agent of a run behind it.
func service(n Network, chain agents.Chain) (*Meter, egress.Endpoint) {
	m := NewMeter(n, "r")
	c := Config{Network: n, Agents: chain, Meter: m}
	return m, c.endpoint(chain[0].Agent, agents.Service{Name: "service"})
}

// send sends a request with a model and other fields.
func send(t *testing.T, e egress.Endpoint, model, more string) (egress.Exchange, error) {
	t.Helper()
	return e.Admit(t.Context(), "POST", "/v1/messages", fmt.Appendf(nil, `{"model":%q,"max_tokens":100000%s}`, model, more))
}

// An agent only gets the models of its run, in the forms in which its program names them.
func TestOnlyModelsOfTheRun(t *testing.T) {
	t.Parallel()
	variable := claudes("sonnet")
	variable[0].Options.Env = []string{"ANTHROPIC_DEFAULT_SONNET_MODEL=my-model", "ANTHROPIC_SMALL_FAST_MODEL=my/small"}
	own := claudes("")
	own[0].Options.Env = []string{"ANTHROPIC_MODEL=claude-opus-4-6"}
	codex := agents.Chain{{Agent: agents.Codex{}, Options: agents.Options{Model: "gpt-5.5"}}}
	for name, tt := range map[string]struct {
		chain        agents.Chain
		extra        []string
		budget       loop.Budget
		allow, other string
	}{
		"exact":               {chain: claudes("claude-sonnet-4-5"), allow: "claude-sonnet-4-5 claude-sonnet-4-5-20250929", other: "claude-opus-4-6 some-dear-model claude-sonnet-4-5-dear claude-sonnet-4"},
		"dated":               {chain: claudes("claude-sonnet-4-5-20250929[1m]"), allow: "claude-sonnet-4-5 claude-sonnet-4-5-20250929", other: "claude-sonnet-4-6"},
		"helper":              {chain: claudes("claude-sonnet-4-5"), allow: "claude-haiku-4-5-20251001 claude-haiku-5-5 claude-3-5-haiku-20241022", other: "claude-3-5-sonnet"},
		"alias":               {chain: claudes("opus"), allow: "claude-opus-5-5 claude-opus-6", other: "claude-sonnet-5-5 claude-fable-5-2 x/claude-opus-5-5"},
		"old opus":            {chain: claudes("claude-opus-4-1-20250805"), allow: "claude-opus-5-5", other: "claude-sonnet-5-5"},
		"further agents":      {chain: claudes("sonnet", "claude-opus-4-6"), allow: "claude-sonnet-5-5 claude-opus-4-6", other: "claude-opus-5-5"},
		"variables":           {chain: variable, allow: "my-model my/small claude-sonnet-5-5", other: "other"},
		"variable":            {chain: own, allow: "claude-opus-4-6", other: "claude-opus-5-5"},
		"the user's":          {chain: claudes("sonnet"), extra: []string{"my-*", "x/y"}, allow: "my-model x/y", other: "x/z my/model"},
		"any":                 {chain: claudes("sonnet"), extra: []string{"*"}, allow: "x/z"},
		"a pattern as a name": {chain: claudes("claude-*"), other: "claude-opus-4-6"},
		"default":             {chain: claudes(""), allow: "claude-opus-5-5 some-dear-model"},
		"default, limited":    {chain: claudes("default"), budget: loop.Budget{CostUSD: 5}, allow: "claude-opus-5-5", other: "some-dear-model"},
		"codex":               {chain: codex, allow: "gpt-5.5 gpt-5.5-2026-04-23", other: "gpt-5.5-pro gpt-6-astra"},
	} {
		m, e := service(Network{Models: tt.extra}, tt.chain)
		m.Limit(tt.budget)
		for _, model := range strings.Fields(tt.allow) {
			x, err := send(t, e, model, "")
			if err != nil {
				t.Errorf("%s: %s is refused: %v", name, model, err)
				continue
			}
			x.End()
		}
		for _, model := range strings.Fields(tt.other) {
			for _, body := range []string{`{"model":%q}`, `{"model":%q,"model":"claude-sonnet-4-5"}`} {
				if _, err := e.Admit(t.Context(), "POST", "/v1/messages", fmt.Appendf(nil, body, model)); !errors.Is(err, egress.ErrOtherModel) || !strings.Contains(err.Error(), model) {
					t.Errorf("%s: %s: %v", name, model, err)
				}
			}
			if !strings.Contains(fmt.Sprint(m.Notices()), "requests for model "+model+" were refused") {
				t.Errorf("%s: the notices do not say that %s was refused: %q", name, model, m.Notices())
			}
		}
	}
}

// An agent cannot avoid a limit in US dollars by asking for what has no known price: it counts as the dearest model.
func TestUnknownPricesKeepToTheBudget(t *testing.T) {
	t.Parallel()
	const answer = `{"model":%q,"usage":{"input_tokens":1,"output_tokens":100000%s}}`
	for name, tt := range map[string]struct {
		model, ask, say string
		sent            int64
		least           float64
	}{
		"unknown model": {model: "some-dear-model", sent: 1, least: 7.5},
		"unknown tier":  {model: "claude-opus-4-6", say: `,"service_tier":"priority"`, sent: 1, least: 2.5},
		"fast":          {model: "claude-opus-4-6", ask: `,"speed":"fast"`},
		"known speed":   {model: "claude-opus-5", ask: `,"speed":"fast"`, say: `,"speed":"fast"`, sent: 1, least: 5},
		"known region":  {model: "claude-opus-4-6", ask: `,"inference_geo":"us"`, say: `,"inference_geo":"us"`, sent: 1, least: 2.75},
		"other region":  {model: "claude-opus-4-6", ask: `,"inference_geo":"mars"`},
		"its region":    {model: "gpt-5.4", say: `,"inference_geo":"mars"`, sent: 1, least: 1.5},
		"tier of one":   {model: "gpt-5.4", ask: `,"fallbacks":[{"model":"claude-opus-4-6"}],"service_tier":"priority"`},
		"known tier":    {model: "gpt-5.4", ask: `,"service_tier":"priority"`, say: `,"service_tier":"priority"`, sent: 1, least: 3},
		"standard tier": {model: "claude-opus-4-6", ask: `,"service_tier":"standard_only"`, sent: 1, least: 2.5},
		"two models":    {model: "some-dear-model", ask: `,"model":"claude-haiku-4-5"`, sent: 1, least: 7.5},
	} {
		for _, shared := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				n, limit := Network{Models: []string{"*"}}, loop.Budget{CostUSD: 0.5}
				if shared {
					n.Account, limit = ledger.NewAccount(ledger.Caps{Day: limit}, &journaltest.Memory{}, ""), loop.Budget{}
				}
				m, e := service(n, claudes("claude-sonnet-4-5"))
				m.Limit(limit)
				var sent atomic.Int64
				var all sync.WaitGroup
				for range 12 {
					all.Go(func() {
						x, err := send(t, e, tt.model, tt.ask)
						if err != nil {
							return
						}
						sent.Add(1)
						<-time.After(time.Second) // by the test's clock
						answered(x, 200, fmt.Sprintf(answer, tt.model, tt.say))
					})
				}
				all.Wait()
				used := m.Used()
				if sent.Load() != tt.sent || used.CostUSD < tt.least || used.CostUSD > tt.least+0.01 || used.Unpriced != 0 {
					t.Errorf("%s: the service got %d requests, %+v was used", name, sent.Load(), used)
				}
				if assumed := name == "unknown model" || name == "its region" || name == "unknown tier" || name == "two models"; assumed != (used.Estimated > 0) {
					t.Errorf("%s: %+v was used", name, used)
				}
			})
		}
	}
}

// The notices stay until the run takes them, whoever else uses its meter, and the observer gets each once. There are only so many.
func TestModelNotices(t *testing.T) {
	t.Parallel()
	m, e := service(Network{Models: []string{"*"}}, claudes("sonnet"))
	m.Limit(loop.Budget{CostUSD: 5})
	var told []string
	m.Tell(func(n sandboxes.Notice) { told = append(told, n.Text) })
	for _, model := range []string{"claude-sonnet-5-5", "claude-haiku-4-5", "some-dear-model", "some-dear-model"} {
		m.Limit(loop.Budget{CostUSD: 500})
		x, err := send(t, e, model, "")
		if err != nil {
			t.Fatal(err)
		}
		answered(x, 200, said(model, 1, 1))
	}
	for range 2 {
		if got := fmt.Sprint(m.Notices()); len(m.Notices()) != 2 || !strings.Contains(got, "the price of model some-dear-model is not known") ||
			!strings.Contains(got, "model some-dear-model answered claude-code, whose model is sonnet") {
			t.Errorf("the notices are %q", got)
		}
	}
	if len(told) != 2 {
		t.Errorf("the observer got %q", told)
	}
	for i := range 100 {
		m.note(sandboxes.Notice{Text: fmt.Sprint(i)})
	}
	if n := len(m.Notices()); n != maxNotices {
		t.Errorf("%d notices", n)
	}
}

// A model that the user has allowed by its name may answer. A refused one has a cause that a setting can change.
func TestAllowedModelIsNoNews(t *testing.T) {
	t.Parallel()
	m, e := service(Network{Models: []string{"my-*"}}, claudes("sonnet"))
	m.Limit(loop.Budget{})
	var told []sandboxes.Notice
	m.Tell(func(n sandboxes.Notice) { told = append(told, n) })
	x, err := send(t, e, "my-model", "")
	if err != nil {
		t.Fatal(err)
	}
	answered(x, 200, said("my-model", 1, 1))
	if len(told) > 0 {
		t.Errorf("the observer got %q", told)
	}
	if _, err := send(t, e, "other", ""); err == nil || len(told) != 1 || told[0].Cause != sandboxes.ModelRefused {
		t.Errorf("the observer got %q", told)
	}
}

// A refusal of another model, which the agent may have asked for on purpose, does not make the agent unavailable. Nor does one that
// a later answer disproves.
func TestOnlyRefusalsOfTheMainModelCount(t *testing.T) {
	t.Parallel()
	type step struct {
		model  string
		status int
	}
	for name, tt := range map[string]struct {
		models  string
		steps   []step
		refused bool
		env     string
	}{
		"another model":           {"claude-sonnet-4-5", []step{{"claude-sonnet-4-5", 200}, {"claude-opus-4-6", 429}}, false, ""},
		"the model":               {"claude-sonnet-4-5", []step{{"claude-sonnet-4-5", 200}, {"claude-sonnet-4-5-20250929", 429}}, true, ""},
		"at once":                 {"claude-sonnet-4-5", []step{{"claude-sonnet-4-5", 429}}, true, ""},
		"answered later":          {"claude-sonnet-4-5", []step{{"claude-sonnet-4-5", 429}, {"claude-sonnet-4-5", 200}}, false, ""},
		"another one is answered": {"claude-sonnet-4-5", []step{{"claude-sonnet-4-5", 429}, {"claude-opus-4-6", 200}}, true, ""},
		"a helper":                {"claude-sonnet-4-5", []step{{"claude-haiku-4-5", 429}, {"claude-sonnet-4-5", 200}}, false, ""},
		"an alias":                {"opus", []step{{"claude-opus-5-5", 200}, {"claude-opus-4-6", 429}}, false, ""},
		"an alias, refused":       {"opus", []step{{"claude-opus-5-5", 200}, {"claude-opus-5-5", 429}}, true, ""},
		"a default":               {"", []step{{"claude-haiku-4-5", 200}, {"claude-opus-5-5", 200}, {"claude-opus-4-6", 429}}, false, ""},
		"a default, refused":      {"", []step{{"claude-haiku-4-5", 200}, {"claude-opus-5-5", 429}}, true, ""},
		"the next agent's":        {"claude-sonnet-4-5 claude-opus-4-6", []step{{"claude-sonnet-4-5", 200}, {"claude-opus-4-6", 429}}, false, ""},
		"only helpers":            {"", []step{{"claude-haiku-4-5", 429}}, true, ""},
		"a named default":         {"", []step{{"my-opus", 200}, {"my-opus", 429}}, true, "ANTHROPIC_DEFAULT_OPUS_MODEL=my-opus"},
		"a named alias":           {"opus", []step{{"my-opus", 429}}, true, "ANTHROPIC_DEFAULT_OPUS_MODEL=my-opus"},
		"after a named helper":    {"opus", []step{{"my/small", 200}, {"claude-opus-5-5", 429}}, true, "ANTHROPIC_SMALL_FAST_MODEL=my/small"},
		"a named helper":          {"opus", []step{{"claude-opus-5-5", 200}, {"my/small", 429}}, false, "ANTHROPIC_SMALL_FAST_MODEL=my/small"},
	} {
		chain := claudes(strings.Split(tt.models, " ")...)
		chain[0].Options.Env = []string{tt.env}
		m, e := service(Network{Models: []string{"*"}}, chain)
		m.Limit(loop.Budget{})
		for _, s := range tt.steps {
			x, err := send(t, e, s.model, "")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, answering(x, s.status, http.Header{"Retry-After": {"604800"}}, strings.NewReader(said(s.model, 1, 1))))
			x.End()
		}
		if got := m.Requests(chain[0]); got.Refused != tt.refused || got.LimitEnd.IsZero() == tt.refused {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A request that began before a refusal does not disprove it.
func TestEarlierRequestDoesNotDisproveARefusal(t *testing.T) {
	t.Parallel()
	chain := claudes("claude-sonnet-4-5")
	m, e := service(Network{}, chain)
	first, err := send(t, e, "claude-sonnet-4-5", "")
	second, err2 := send(t, e, "claude-sonnet-4-5", "")
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	answered(second, 429, "")
	answered(first, 200, said("claude-sonnet-4-5", 1, 1))
	if !m.Requests(chain[0]).Refused {
		t.Error("the refusal does not count")
	}
}

// Dense text has more tokens than usual. Requests reserve for that while others are open.
func TestDenseRequestsKeepToTheBudget(t *testing.T) {
	t.Parallel()
	m := NewMeter(Network{}, "r")
	m.Limit(loop.Budget{Tokens: 100_000})
	open := 0
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("hung up")) // a request that has to wait fails
	for range 12 {
		if _, err := m.admit(ctx, nil, "POST", "/v1/messages", []byte(`{"max_tokens":1,"x":"`+strings.Repeat("x", 60_000)+`"}`)); err == nil {
			open++
		}
	}
	if open != 3 {
		t.Errorf("%d requests are open", open)
	}
}
