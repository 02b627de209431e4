package cli

import (
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/run"
)

// uncounted says of which agents nobody counts what they use, and what counts instead; empty: of none.
func uncounted(c run.Config) string {
	var names []string
	for _, agent := range c.Uncounted() {
		names = append(names, agent.Name())
	}
	if len(names) == 0 {
		return ""
	}
	text := "nobody counts what agent " + strings.Join(names, ", ") + " uses: "
	e := c.Estimated()
	switch {
	case e == (loop.Budget{}):
		return text + "its cost is unknown; under a budget each of its iterations counts as estimate-tokens and estimate-usd say"
	case e.CostUSD == 0:
		return text + fmt.Sprintf("each of its iterations counts as %d tokens (estimate-tokens)", e.Tokens)
	}
	return text + fmt.Sprintf("each of its iterations counts as %d tokens (estimate-tokens) and $%.2f (estimate-usd)", e.Tokens, e.CostUSD)
}

// estimated says it where a budget or a cap makes it count; else it is empty.
func estimated(c run.Config) string {
	if c.Estimated() == (loop.Budget{}) {
		return ""
	}
	return uncounted(c)
}
