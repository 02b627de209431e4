package keys

import (
	"time"

	"github.com/ralph-pool/ralph/pool/ledger"
)

// retryKeys returns the keys of retries.
func retryKeys() []Key {
	return []Key{
		{
			Name:    "max-attempts",
			Help:    "attempts before an issue goes to a human",
			Kind:    Int,
			Default: 3,
			Min:     1,
			Guard:   Above,
			Use:     toWork,
		},
		{
			Name:    "retry-backoff",
			Help:    "wait before the second attempt; doubles",
			Kind:    Duration,
			Default: time.Minute,
			Guard:   Below,
			Use:     toWork,
		},
		{
			Name:    "retry-backoff-max",
			Help:    "longest wait between attempts",
			Kind:    Duration,
			Default: time.Hour,
			Guard:   Below,
			Use:     toWork,
		},
	}
}

// budgetKeys returns the keys of budgets for one issue, run or iteration.
func budgetKeys() []Key {
	return []Key{
		{
			Name:    "budget-tokens",
			Help:    "tokens all attempts of an issue may use; 0: no limit",
			Kind:    Int,
			Default: int64(0),
			Guard:   Above,
			Use:     toWork | toRun,
		},
		{
			Name:  "budget-usd",
			Help:  "US dollars all attempts of an issue may cost; 0: no limit",
			Kind:  Float,
			Guard: Above,
			Use:   toWork | toRun,
		},
		{
			Name:    "budget-tokens-run",
			Help:    "tokens one run may use, its review included; 0: no limit",
			Kind:    Int,
			Default: int64(0),
			Guard:   Above,
			Use:     toWork | toRun,
		},
		{
			Name:  "budget-usd-run",
			Help:  "US dollars one run may cost, its review included; 0: no limit",
			Kind:  Float,
			Guard: Above,
			Use:   toWork | toRun,
		},
		{
			Name:    "budget-tokens-iteration",
			Help:    "tokens one iteration may use before the next begins; 0: no limit",
			Kind:    Int,
			Default: int64(0),
			Guard:   Above,
			Use:     toWork | toRun,
		},
		{
			Name:  "budget-usd-iteration",
			Help:  "US dollars one iteration may cost before the next begins; 0: no limit",
			Kind:  Float,
			Guard: Above,
			Use:   toWork | toRun,
		},
		{
			Name:  "budget-agents",
			Help:  "AGENT[:MODEL]=USD[/TOKENS] that this agent may use in one run; then the next of fallback continues",
			Kind:  Names,
			Check: checkShare,
			Guard: Changed,
			Use:   toWork | toRun,
		},
	}
}

// spendingKeys returns the keys of budgets for all runs together, and of prices and estimates.
func spendingKeys() []Key {
	return []Key{
		{
			Name:    "budget-tokens-day",
			Help:    "tokens all runs of this repository on this host may use in one day, in UTC; 0: no limit",
			Kind:    Int,
			Default: int64(0),
			Guard:   Above,
			Use:     toWork | toRun,
		},
		{
			Name:    "budget-tokens-month",
			Help:    "tokens all runs of this repository on this host may use in one month, in UTC; 0: no limit",
			Kind:    Int,
			Default: int64(0),
			Guard:   Above,
			Use:     toWork | toRun,
		},
		{
			Name:  "budget-usd-day",
			Help:  "US dollars all runs of this repository on this host may cost in one day, in UTC; 0: no limit",
			Kind:  Float,
			Guard: Above,
			Use:   toWork | toRun,
		},
		{
			Name:  "budget-usd-month",
			Help:  "US dollars all runs of this repository on this host may cost in one month, in UTC; 0: no limit",
			Kind:  Float,
			Guard: Above,
			Use:   toWork | toRun,
		},
		{
			Name:    "estimate-tokens",
			Help:    "tokens that an iteration counts for when its usage is unknown",
			Kind:    Int,
			Default: ledger.DefaultEstimate().Tokens,
			Min:     1,
			Guard:   Below,
			Bound:   true,
			Use:     toWork | toRun,
		},
		{
			Name:    "estimate-usd",
			Help:    "US dollars that an iteration counts for when its cost is unknown",
			Kind:    Float,
			Default: ledger.DefaultEstimate().CostUSD,
			Guard:   Below,
			Bound:   true,
			Use:     toWork | toRun,
		},
		{
			Name:  "prices",
			Help:  "MODEL=INPUT/OUTPUT[/CACHE-READ/CACHE-WRITE] in US dollars per million tokens, instead of ralph's own prices",
			Kind:  Names,
			Check: checkPrice,
			Guard: Changed,
			Use:   toWork | toRun,
		},
		{
			Name:  "allow-models",
			Help:  "further models that agents may use behind ralph's proxy; my-* matches every name that begins so, * every name",
			Kind:  Names,
			Guard: Listed,
			Use:   toWork | toRun,
		},
	}
}
