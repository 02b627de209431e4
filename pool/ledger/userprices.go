package ledger

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseOwn parses a user's own prices, each "MODEL=INPUT/OUTPUT" or "MODEL=INPUT/OUTPUT/CACHE-READ/CACHE-WRITE", in US
// dollars per million tokens. Without cache prices, tokens of the cache cost as much as input.
func ParseOwn(list []string) (Prices, error) {
	own := Prices{Models: map[string]Price{}}
	for _, s := range list {
		model, rates, err := parseOwn(s)
		if err != nil {
			return Prices{}, fmt.Errorf("%q %w", s, err)
		}
		own.Models[model] = Price{Rates: rates}
	}
	return own, nil
}

func parseOwn(s string) (model string, r Rates, err error) {
	at := strings.LastIndexByte(s, '=')
	numbers := strings.Split(s[at+1:], "/")
	if at < 1 || len(numbers) != 2 && len(numbers) != 4 {
		return "", r, errors.New("is not MODEL=INPUT/OUTPUT, such as my-model=0.5/2, in US dollars per million tokens")
	}
	var v [4]float64
	for i, n := range numbers {
		v[i], err = strconv.ParseFloat(n, 64)
		if err != nil || v[i] < 0 || v[i] > 1e6 || math.IsNaN(v[i]) {
			return "", r, fmt.Errorf("has %q, which is not a price", n)
		}
	}
	r = Rates{Input: v[0], Output: v[1], CacheRead: v[2], CacheWrite: v[3]}
	if len(numbers) == 2 {
		r.CacheRead, r.CacheWrite = r.Input, r.Input
	}
	return strings.ToLower(s[:at]), r, nil
}
