// Package ledger computes the cost of models, and keeps runs within budgets and caps. The prices of the large services are
// part of the program, with their date; a user's own prices replace or extend them.
//
// Package gateway uses it to price the answers of a model's service. Prices never change once they are made, so they are
// safe for concurrent use.
package ledger

import (
	_ "embed" // the prices
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/pattern"
)

//go:embed prices.json
var builtin []byte

// Rates are prices in USD per million tokens.
type Rates struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

// Price is the price of a model.
type Price struct {
	Rates
	// Hour is the price of a token written to the cache for an hour, as a multiple of the input rate; 0: CacheWrite
	// applies.
	Hour float64 `json:"hour,omitempty"`
	// Tiers are the prices of nonstandard service tiers, as multiples of all rates.
	Tiers map[string]float64 `json:"tiers,omitempty"`
	// Regions are the prices of a model that runs in one region only, as multiples of all rates.
	Regions map[string]float64 `json:"regions,omitempty"`
	// Long replaces the rates for requests with long prompts; nil: there is one price.
	Long *Long `json:"long,omitempty"`
}

// Long is the price of requests with long prompts.
type Long struct {
	Above int64 `json:"above"` // tokens of the prompt, including those of the cache
	Rates
}

// Terms are the properties of an answer, besides model and tokens, that affect its price.
type Terms struct {
	HourWrites int64  // tokens written to the cache for an hour; part of CacheWrite
	Tier       string // service tier; empty means "standard"
	Region     string // in which the model ran; empty: any
}

// Standard reports whether the tier is the standard one.
func (t Terms) Standard() bool { return t.Tier == "" || t.Tier == "standard" }

// String names service tier and region.
func (t Terms) String() string {
	var all []string
	if !t.Standard() {
		all = append(all, "in service tier "+t.Tier)
	}
	if t.Region != "" {
		all = append(all, "in region "+t.Region)
	}
	return strings.Join(all, " ")
}

// Prices are the prices of models by lower-case name. The zero value has none. Do not change Models after the first use.
type Prices struct {
	Models map[string]Price
}

// Builtin returns the prices that are part of the program.
func Builtin() Prices { return decoded() }

var decoded = sync.OnceValue(decode) //nolint:gochecknoglobals // each meter of a run needs it; nothing writes to the result

func decode() Prices {
	var file struct {
		Families map[string]Price `json:"families"` // common prices of models, by name prefix
		Models   map[string]Price `json:"models"`
	}
	if err := json.Unmarshal(builtin, &file); err != nil {
		panic("the built-in prices: " + err.Error())
	}
	for name, price := range file.Models {
		for prefix, family := range file.Families {
			if strings.HasPrefix(name, prefix) {
				price.Hour, price.Regions = family.Hour, family.Regions
				tiers := maps.Clone(family.Tiers)
				maps.Copy(tiers, price.Tiers)
				price.Tiers = tiers
			}
		}
		file.Models[name] = price
	}
	return Prices{Models: file.Models}
}

// With returns the prices with own ones added, which take precedence.
func (p Prices) With(own Prices) Prices {
	if len(own.Models) == 0 {
		return p
	}
	all := maps.Clone(p.Models)
	if all == nil {
		all = map[string]Price{}
	}
	for name, price := range own.Models {
		all[strings.ToLower(name)] = price
	}
	return Prices{Models: all}
}

// Cost returns the cost of one answer in USD, which depends on the length of the prompt. known is false if there is no
// price for these terms: then the cost is unknown and not zero.
func (price Price) Cost(u agents.Usage, t Terms) (usd float64, known bool) {
	rates, factor := price.Rates, 1.0
	long := price.Long != nil && u.Input+u.CacheRead+u.CacheWrite > price.Long.Above
	if long {
		rates = price.Long.Rates
	}
	if !t.Standard() {
		if factor = price.Tiers[t.Tier]; factor == 0 || long && factor > 1 { // more expensive tiers have no price for long prompts
			return 0, false
		}
	}
	if t.Region != "" {
		if price.Regions[t.Region] == 0 {
			return 0, false
		}
		factor *= price.Regions[t.Region]
	}
	hour, written := min(t.HourWrites, u.CacheWrite), rates.CacheWrite
	if price.Hour > 0 {
		written = price.Hour * rates.Input
	}
	return factor * (float64(u.Input)*rates.Input + float64(u.Output)*rates.Output +
		float64(u.CacheRead)*rates.CacheRead + float64(u.CacheWrite-hour)*rates.CacheWrite + float64(hour)*written) / 1e6, true
}

// Covers reports whether there are prices for the service tier and the region.
func (price Price) Covers(t Terms) bool {
	return (t.Standard() || price.Tiers[t.Tier] > 0) && (t.Region == "" || price.Regions[t.Region] > 0)
}

// Dearest returns the price in the dearest of these service tiers and regions, as a multiple of the standard price, and at least 1.
func (price Price) Dearest(tiers, regions []string) float64 {
	tier, region := 1.0, 1.0
	for _, name := range tiers {
		tier = max(tier, price.Tiers[name])
	}
	for _, name := range regions {
		region = max(region, price.Regions[name])
	}
	return tier * region
}

// Assumed returns the cost to assume for an answer whose cost is unknown: that in the dearest service tier and region with a price, as
// far as they are not the usual ones.
func (price Price) Assumed(u agents.Usage, t Terms) float64 {
	var tiers, regions []string
	if !t.Standard() {
		tiers = slices.Collect(maps.Keys(price.Tiers))
	}
	if t.Region != "" {
		regions = slices.Collect(maps.Keys(price.Regions))
	}
	usd, _ := price.Cost(u, Terms{HourWrites: t.HourWrites})
	return usd * price.Dearest(tiers, regions)
}

// Dearest returns a price that is at least that of every model whose name begins with one of the prefixes, or that of every model
// if none does.
func (p Prices) Dearest(prefixes []string) Price {
	most := p.dearest(prefixes)
	if most.Rates == (Rates{}) {
		most = p.dearest([]string{""})
	}
	return most
}

func (p Prices) dearest(prefixes []string) (most Price) {
	for name, price := range p.Models {
		if !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		most.Rates, most.Hour = most.larger(price.Rates), max(most.Hour, price.Hour)
		if price.Long != nil {
			most.Rates = most.larger(price.Long.Rates)
		}
	}
	return most
}

func (r Rates) larger(o Rates) Rates {
	return Rates{max(r.Input, o.Input), max(r.Output, o.Output), max(r.CacheRead, o.CacheRead), max(r.CacheWrite, o.CacheWrite)}
}

// version matches suffixes of a model's name that do not make another model: a date, a version, a state.
var version = pattern.Lazy(`^(?:[-@](?:20\d{6}|20\d\d-\d\d-\d\d|\d{3}|latest|default)|-preview(?:-\d\d-\d{2,4})?|-v\d+|:\d+k?|\[1m\])*$`)

// Of returns the price of the longest known name in a model's name. It ignores folders, vendors and regions before the
// name, and a version after it: claude-opus-4-5 matches us.anthropic.claude-opus-4-5-20251101-v1:0. known is false if no
// name matches.
func (p Prices) Of(model string) (best Price, known bool) {
	longest := 0
	model = strings.ToLower(model)
	for at := 0; at < len(model); at++ {
		if at > 0 && model[at-1] != '/' && model[at-1] != '.' {
			continue
		}
		for name, price := range p.Models {
			rest, ok := strings.CutPrefix(model[at:], name)
			if ok && len(name) > longest && version().MatchString(rest) {
				best, known, longest = price, true, len(name)
			}
		}
	}
	return best, known
}
