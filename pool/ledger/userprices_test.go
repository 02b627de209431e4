package ledger_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/ledger"
)

func TestParseOwn(t *testing.T) {
	t.Parallel()
	own, err := ledger.ParseOwn([]string{"My-Model=0.5/2", "a=b=1/2/0.1/3", "gpt-5.5=0/0"})
	if err != nil {
		t.Fatal(err)
	}
	prices := ledger.Builtin().With(own)
	for model, want := range map[string]float64{"my-model": 0.5 + 2 + 0.5 + 0.5, "a=b": 6.1, "gpt-5.5": 0} {
		if got, known := cost(prices, model, million, ledger.Terms{}); got != want || !known {
			t.Errorf("%s costs %v (%v), want %v", model, got, known, want)
		}
	}
	if _, known := cost(ledger.Builtin(), "my-model", agents.Usage{}, ledger.Terms{}); known {
		t.Error("the built-in prices have changed")
	}
	for bad, want := range map[string]string{
		"": "is not MODEL", "=1/2": "is not MODEL", "m=1": "is not MODEL", "m=1/2/3": "is not MODEL", "m=1/-2": `"-2"`,
		"m=1/x": `"x"`, "m=NaN/1": `"NaN"`, "m=inf/1": `"inf"`, "m=1/": `""`,
	} {
		if _, err := ledger.ParseOwn([]string{bad}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", bad, err, want)
		}
	}
}
