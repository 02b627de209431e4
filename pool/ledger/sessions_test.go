package ledger_test

import (
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/ledger"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	first := loop.Iteration{Number: 1, Usage: agents.Usage{Input: 9000}}
	resumed := func(n int, u agents.Usage) loop.Iteration { return loop.Iteration{Number: n, Resumed: true, Usage: u} }
	fresh := loop.Iteration{Number: 4, Usage: agents.Usage{Input: 800, CacheRead: 7}}
	for want, list := range map[string][]loop.Iteration{
		"": {first, fresh},
		"2 resumed, each 20 tokens and 300 from the cache, $0.2000; 1 in new sessions after the first, each 800 tokens and 7 from the cache": {
			first, resumed(2, agents.Usage{Input: 10, CacheRead: 100, CostUSD: 0.1}), resumed(3, agents.Usage{Output: 30, CacheRead: 500, CostUSD: 0.3}), fresh,
		},
		"1 resumed, each 10 tokens and 0 from the cache; no later one began a new session, so there is no comparison": {
			first, resumed(2, agents.Usage{Input: 10}), resumed(3, agents.Usage{}),
		},
	} {
		var sum ledger.Sessions
		for _, it := range list { // one run after the other
			sum = sum.Add(ledger.Compare([]loop.Iteration{it}))
		}
		for _, got := range []string{ledger.Compare(list).String(), sum.String()} {
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
}
