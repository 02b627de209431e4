package ledger_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/ledger"
)

func TestParseShares(t *testing.T) {
	t.Parallel()
	got, err := ledger.ParseShares([]string{"claude-code:opus=5", "codex=0/200000", "claude-code=1.5/7"})
	want := ledger.Shares{
		{Agent: "claude-code", Model: "opus"}: {CostUSD: 5}, {Agent: "codex"}: {Tokens: 200000}, {Agent: "claude-code"}: {CostUSD: 1.5, Tokens: 7},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := ledger.ParseShares(nil); got != nil || err != nil {
		t.Errorf("%v, %v for none", got, err)
	}
	for text, why := range map[string]string{
		"codex": "is not AGENT=USD", "=1": "is not AGENT=USD", "codex=": "no amount", "codex=-1": "no amount", "codex=NaN": "no amount",
		"codex=Inf": "no amount", "codex=1/": "no number of tokens", "codex=1/-2": "no number of tokens", "codex=1/x": "no number of tokens",
		"codex=0": "limits nothing", "codex:=1": "has no AGENT", "a b=1": "has no AGENT",
	} {
		if _, err := ledger.ParseShares([]string{text}); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", text, err, why)
		}
	}
	if _, err := ledger.ParseShares([]string{"codex=1", "codex=2"}); err == nil {
		t.Error("two budgets for one agent are accepted")
	}
}

func FuzzParseShares(f *testing.F) {
	f.Add("claude-code:opus=5/7")
	f.Fuzz(func(t *testing.T, text string) {
		shares, err := ledger.ParseShares([]string{text})
		if err != nil {
			return
		}
		for c, b := range shares {
			if c.Agent == "" || b.CostUSD < 0 || b.Tokens < 0 || b == (loop.Budget{}) {
				t.Errorf("%q is %+v of %+v", text, b, c)
			}
		}
	})
}
