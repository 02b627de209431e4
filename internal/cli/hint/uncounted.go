package hint

import (
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/run"
)

// Uncounted names the agents whose usage nobody counts, and the estimate that replaces it. It returns "" if there are none.
func Uncounted(c run.Config) string {
	var names []string
	for _, agent := range c.Uncounted() {
		names = append(names, agent.Name())
	}
	if len(names) == 0 {
		return ""
	}
	text := "the usage of agent " + strings.Join(names, ", ") + " is unknown: "
	e := c.Estimated()
	switch {
	case e == (loop.Budget{}):
		return text + fmt.Sprintf("with a budget each of its iterations "+
			"counts as %d tokens (estimate-tokens) and $%.2f (estimate-usd)",
			c.Estimate.Tokens, c.Estimate.CostUSD)
	case e.CostUSD == 0:
		return text + fmt.Sprintf("each of its iterations counts as %d tokens (estimate-tokens)", e.Tokens)
	}
	return text + fmt.Sprintf("each of its iterations counts as %d tokens (estimate-tokens) and $%.2f (estimate-usd)", e.Tokens, e.CostUSD)
}

// Unpriced names the agents of which only tokens are known, and the estimate of their cost. It returns "" if there are none.
func Unpriced(c run.Config) string {
	var names []string
	for _, who := range c.Unpriced() {
		lacks := "a model (model)"
		if who.Model != "" {
			lacks = "a price of its model (prices)"
		}
		names = append(names, fmt.Sprintf("%s without %s", who, lacks))
	}
	if len(names) == 0 {
		return ""
	}
	text := "the cost of agent " + strings.Join(names, ", ") + " is unknown"
	if e := c.Estimated(); e.CostUSD > 0 {
		return text + fmt.Sprintf(": each of its iterations counts as $%.2f (estimate-usd); a limit in tokens (budget-tokens) is exact",
			e.CostUSD)
	}
	return text + fmt.Sprintf("; with a limit in US dollars each of its iterations counts as $%.2f (estimate-usd)", c.Estimate.CostUSD)
}

// Estimated returns Uncounted and Unpriced as lines, each only if a budget or cap makes its estimate matter.
func Estimated(c run.Config) (lines []string) {
	e := c.Estimated()
	if text := Uncounted(c); text != "" && e != (loop.Budget{}) {
		lines = append(lines, text)
	}
	if text := Unpriced(c); text != "" && e.CostUSD > 0 {
		lines = append(lines, text)
	}
	return lines
}
