package ledger_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/ledger"
)

// million is one million tokens of each kind.
var million = agents.Usage{Input: 1e6, Output: 1e6, CacheRead: 1e6, CacheWrite: 1e6}

func TestBuiltinIsSane(t *testing.T) {
	t.Parallel()
	p := ledger.Builtin()
	if len(p.Models) < 50 {
		t.Errorf("only %d models", len(p.Models))
	}
	for name, price := range p.Models {
		if name != strings.ToLower(name) {
			t.Errorf("%s is not in lower case", name)
		}
		sane(t, name, price.Rates)
		if long := price.Long; long != nil {
			sane(t, name+", long", long.Rates)
			if long.Above < 100_000 || long.Input <= price.Input || long.Output <= price.Output ||
				long.CacheRead <= price.CacheRead || long.CacheWrite <= price.CacheWrite {
				t.Errorf("%s: long prompts cost less: %+v", name, long)
			}
		}
	}
}

func sane(t *testing.T, name string, r ledger.Rates) {
	t.Helper()
	if !(0 < r.CacheRead && r.CacheRead < r.Input && r.Input <= r.CacheWrite && r.CacheWrite <= r.Output && r.Output < 200) {
		t.Errorf("%s: %+v", name, r)
	}
}

// The file has no field or model that the program ignores.
func TestBuiltinIsRead(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("prices.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Date     string                  `json:"date"`
		Source   []string                `json:"source"`
		Families map[string]ledger.Price `json:"families"`
		Models   map[string]ledger.Price `json:"models"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse(time.DateOnly, file.Date); err != nil || len(file.Source) == 0 {
		t.Errorf("no date or no source is named: %v", err)
	}
	if lines := bytes.Count(text, []byte(`": {"input"`)); lines != len(file.Models) {
		t.Errorf("%d models on %d lines: is one there twice?", len(file.Models), lines)
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	p := ledger.Builtin()
	tests := []struct {
		model string
		usage agents.Usage
		want  float64
	}{
		{"claude-opus-4-6", million, 5 + 25 + 0.5 + 6.25},
		{"claude-opus-4-6", agents.Usage{Input: 1200, Output: 42, CacheRead: 800, CacheWrite: 300}, (1200*5 + 42*25 + 800*0.5 + 300*6.25) / 1e6},
		{"claude-opus-4-6", agents.Usage{CostUSD: 9}, 0},
		{"claude-haiku-5-5", agents.Usage{Input: 100_000, Output: 1000}, 0.01 + 0.0005},
		{"claude-haiku-5-5", agents.Usage{Input: 1, CacheRead: 99_999, CacheWrite: 1, Output: 1000}, (0.5 + 99_999*0.05 + 0.625 + 2500) / 1e6},
		{"gpt-6.1-sol", agents.Usage{Input: 272_001}, 272_001 * 4 / 1e6},
		{"gemini-2.5-pro", agents.Usage{Input: 200_000, Output: 10}, 0.25 + 0.0001},
	}
	for _, tt := range tests {
		if got, known := cost(p, tt.model, tt.usage, ledger.Terms{}); !known || math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%+v of %s costs %v, known %t; want %v", tt.usage, tt.model, got, known, tt.want)
		}
	}
}

// Writes to the cache for an hour, and other service tiers, have their own prices. The price of an unlisted tier is
// unknown.
func TestTerms(t *testing.T) {
	t.Parallel()
	p := ledger.Builtin()
	own, err := ledger.ParseOwn([]string{"claude-opus-4-6=1/2/3/4"})
	if err != nil {
		t.Fatal(err)
	}
	long := agents.Usage{Input: 300_000}
	for _, c := range []struct {
		prices ledger.Prices
		model  string
		usage  agents.Usage
		terms  ledger.Terms
		want   float64 // below zero: unknown
	}{
		{p, "claude-opus-4-6", million, ledger.Terms{HourWrites: 1e6}, 5 + 25 + 0.5 + 10},
		{p, "claude-opus-4-6", million, ledger.Terms{HourWrites: 4e5, Tier: "standard"}, 5 + 25 + 0.5 + 0.6*6.25 + 0.4*10},
		{p, "claude-opus-4-6", million, ledger.Terms{HourWrites: 9e9}, 5 + 25 + 0.5 + 10}, // a false report: there were not that many
		{p, "claude-sonnet-4-5", agents.Usage{Input: 2e5, CacheWrite: 1e5}, ledger.Terms{HourWrites: 1e5}, 0.2*6 + 0.1*12},
		{p, "claude-opus-4-6", million, ledger.Terms{HourWrites: 1e6, Tier: "batch"}, (5 + 25 + 0.5 + 10) / 2},
		{p, "claude-opus-4-6", million, ledger.Terms{Tier: "priority"}, -1},
		{p, "claude-opus-4-6", million, ledger.Terms{Tier: "fast"}, -1},
		{p, "gpt-5-mini-2025-08-07", agents.Usage{Input: 1e6}, ledger.Terms{Tier: "flex"}, 0.125},
		{p, "gpt-5-mini-2025-08-07", agents.Usage{Input: 1e6}, ledger.Terms{Tier: "priority"}, 0.45},
		{p, "gpt-5.4", long, ledger.Terms{Tier: "flex"}, 0.3 * 2.5},
		{p, "gpt-5.4", long, ledger.Terms{Tier: "priority"}, -1},
		{p, "gpt-6-sol", million, ledger.Terms{Tier: "priority"}, -1},
		{p, "o4-mini", agents.Usage{Output: 1e6}, ledger.Terms{Tier: "batch"}, 2.2},
		{p, "gemini-2.5-flash", agents.Usage{Input: 1e6}, ledger.Terms{Tier: "flex"}, 0.15},
		{p, "gemini-2.5-flash", million, ledger.Terms{Tier: "scale"}, -1},
		{p, "no-such-model", million, ledger.Terms{Tier: "flex"}, -1},
		{p, "claude-opus-4-6", million, ledger.Terms{Region: "us"}, 1.1 * (5 + 25 + 0.5 + 6.25)},
		{p, "claude-opus-4-6", million, ledger.Terms{Tier: "batch", Region: "us"}, 0.55 * (5 + 25 + 0.5 + 6.25)},
		{p, "claude-opus-4-6", million, ledger.Terms{Region: "mars"}, -1},
		{p, "gpt-5.4", million, ledger.Terms{Region: "us"}, -1},
		{p.With(own), "claude-opus-4-6", million, ledger.Terms{Region: "us"}, -1},
		{p.With(own), "claude-opus-4-6", million, ledger.Terms{HourWrites: 1e6}, 1 + 2 + 3 + 4}, // the user's price applies
		{p.With(own), "claude-opus-4-6", million, ledger.Terms{Tier: "batch"}, -1},
	} {
		got, known := cost(c.prices, c.model, c.usage, c.terms)
		if known != (c.want >= 0) || known && math.Abs(got-c.want) > 1e-9 || !known && got != 0 {
			t.Errorf("%s, %+v: %v, known %t; want %v", c.model, c.terms, got, known, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	p := ledger.Builtin()
	tests := []struct{ model, want string }{
		{"claude-sonnet-4-5", "claude-sonnet-4-5"},
		{"claude-sonnet-4-5-20250929", "claude-sonnet-4-5"},
		{"claude-sonnet-4-20250514", "claude-sonnet-4"},
		{"Claude-Opus-4-1-20250805", "claude-opus-4-1"},
		{"claude-opus-5-5", "claude-opus-5-5"},
		{"claude-3-5-haiku-latest", "claude-3-5-haiku"},
		{"claude-opus-4-6[1m]", "claude-opus-4-6"},
		{"anthropic/claude-opus-5", "claude-opus-5"},
		{"anthropic.claude-3-haiku-20240307-v1:0", "claude-3-haiku"},
		{"anthropic.claude-3-haiku-20240307-v1:0:48k", "claude-3-haiku"},
		{"us.anthropic.claude-opus-4-6-v1", "claude-opus-4-6"},
		{"global.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"},
		{"arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5"},
		{"publishers/anthropic/models/claude-sonnet-4-5@20250929", "claude-sonnet-4-5"},
		{"claude-opus-4-6@default", "claude-opus-4-6"},
		{"gpt-5", "gpt-5"},
		{"gpt-5-2025-08-07", "gpt-5"},
		{"gpt-5.1-codex-mini", "gpt-5.1-codex-mini"},
		{"openai/gpt-5.4-mini-2026-03-17", "gpt-5.4-mini"},
		{"models/gemini-2.5-pro", "gemini-2.5-pro"},
		{"models/gemini-2.5-flash-lite-preview-09-2025", "gemini-2.5-flash-lite"},
		{"projects/p/locations/l/publishers/google/models/gemini-2.5-flash-001", "gemini-2.5-flash"},
		{"gemini-3.1-pro-preview", "gemini-3.1-pro-preview"},
	}
	for _, tt := range tests {
		// A unique price identifies the model.
		const mark = 12345.5
		own := p.With(ledger.Prices{Models: map[string]ledger.Price{tt.want: {Rates: ledger.Rates{Input: mark}}}})
		if usd, known := cost(own, tt.model, agents.Usage{Input: 1e6}, ledger.Terms{}); !known || usd != mark {
			t.Errorf("%s costs %v, known %t; want the price of %s", tt.model, usd, known, tt.want)
		}
		if _, known := p.Models[tt.want]; !known {
			t.Errorf("%s is no built-in model", tt.want)
		}
	}
}

// A model with a name similar to a known one may cost more.
func TestUnknown(t *testing.T) {
	t.Parallel()
	p := ledger.Builtin()
	for _, model := range []string{
		"", ".", "/", "claude", "claude-opus", "mock-model", "gpt-5.9", "gpt-5-pro", "gpt-5.4-pro", "gpt-5.3-codex-max",
		"gpt-5x", "o3-pro", "o3-deep-research", "claude-opus-4-9", "claude-opus-9", "claude-opus-5-5-fast", "my-gpt-5", "xclaude-opus-5",
		"gemini-2.5-flash-image", "gemini-2.5-flash-preview-tts", "gemini-2.5", "5", "gpt-5.", "gpt-5/other", "gpt-5-20250807-other",
		strings.Repeat(".", 300),
	} {
		if usd, known := cost(p, model, million, ledger.Terms{}); known || usd != 0 {
			t.Errorf("%q costs %v, known %t", model, usd, known)
		}
	}
	if _, known := cost(ledger.Prices{}, "gpt-5", million, ledger.Terms{}); known {
		t.Error("the zero value knows a price")
	}
}

func TestOwnPrices(t *testing.T) {
	t.Parallel()
	builtin := ledger.Builtin()
	own := builtin.With(ledger.Prices{Models: map[string]ledger.Price{
		"GPT-6-Sol":    {Rates: ledger.Rates{Input: 7}},
		"local/qwen":   {},
		"gpt-6-sol-v2": {Rates: ledger.Rates{Input: 9}},
		"gpt-6-sol-x":  {Rates: ledger.Rates{Input: 8}},
	}})
	tests := []struct {
		model string
		want  float64
	}{
		{"gpt-6-sol", 7}, {"gpt-6-sol-2026-09-22", 7}, {"local/qwen", 0}, {"local/qwen:7", 0}, {"gpt-6-sol-x", 8}, {"gpt-6-sol-v2:1", 9}, {"gpt-6.1-terra", 2},
	}
	for _, tt := range tests {
		if usd, known := cost(own, tt.model, agents.Usage{Input: 1e6}, ledger.Terms{}); !known || usd != tt.want {
			t.Errorf("%s costs %v, known %t; want %v", tt.model, usd, known, tt.want)
		}
	}
	if usd, _ := cost(builtin, "gpt-6-sol", agents.Usage{Input: 1000}, ledger.Terms{}); usd != 0.002 {
		t.Errorf("own prices have changed the others: %v", usd)
	}
	if usd, known := cost(ledger.Prices{}.With(own), "gpt-6-sol-x", agents.Usage{Input: 1e6}, ledger.Terms{}); !known || usd != 8 {
		t.Errorf("own prices alone: %v, %t", usd, known)
	}
}

// cost returns the cost of a model's answer.
func cost(p ledger.Prices, model string, u agents.Usage, t ledger.Terms) (usd float64, known bool) {
	price, known := p.Of(model)
	if !known {
		return 0, false
	}
	return price.Cost(u, t)
}
