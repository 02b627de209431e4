package ledger

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
)

// Shares limits what each agent may use in one run.
type Shares map[agents.Choice]loop.Budget

// ParseShares parses shares, each "AGENT=USD" or "AGENT=USD/TOKENS", where AGENT may be AGENT:MODEL and 0 means no limit.
func ParseShares(list []string) (Shares, error) {
	if len(list) == 0 {
		return nil, nil
	}
	shares := Shares{}
	for _, s := range list {
		c, b, err := parseShare(s)
		if err != nil {
			return nil, fmt.Errorf("%q %w", s, err)
		}
		if _, twice := shares[c]; twice {
			return nil, fmt.Errorf("%q is the second budget of %s", s, c)
		}
		shares[c] = b
	}
	return shares, nil
}

func parseShare(s string) (c agents.Choice, b loop.Budget, err error) {
	fail := func(why string) (agents.Choice, loop.Budget, error) { return c, b, errors.New(why) }
	at := strings.LastIndexByte(s, '=')
	if at < 1 {
		return fail("is not AGENT=USD or AGENT=USD/TOKENS, such as codex=2.50")
	}
	if c, err = agents.ParseChoice(s[:at]); err != nil {
		return fail("has no AGENT or AGENT:MODEL before the equals sign")
	}
	usd, tokens, both := strings.Cut(s[at+1:], "/")
	b.CostUSD, err = strconv.ParseFloat(usd, 64)
	if err != nil || !(b.CostUSD >= 0) || math.IsInf(b.CostUSD, 0) {
		return fail("has no amount of US dollars after the equals sign")
	}
	if both {
		b.Tokens, err = strconv.ParseInt(tokens, 10, 64)
	}
	switch {
	case err != nil || b.Tokens < 0:
		return fail("has no number of tokens after the slash")
	case b == (loop.Budget{}):
		return fail("limits nothing; remove it")
	}
	return c, b, nil
}
