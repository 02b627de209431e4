package gateway

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/meter"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/ledger"
)

// Meter counts what one run uses of its model service, from the answers that pass ralph. It may be used from several
// goroutines.
type Meter struct {
	prices  ledger.Prices
	changed chan struct{}

	mu       sync.Mutex
	budget   loop.Budget     // guarded by mu
	used     agents.Usage    // guarded by mu
	unpriced map[string]bool // guarded by mu; models whose price is not known
}

// NewMeter makes a meter that has counted nothing. own are prices that replace and add to the built-in ones.
func NewMeter(own ledger.Prices) *Meter {
	return &Meter{prices: ledger.Builtin().With(own), changed: make(chan struct{}, 1), unpriced: map[string]bool{}}
}

// Limit lets the service be asked no more once the budget is spent.
func (m *Meter) Limit(b loop.Budget) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.budget = b
}

// Used is what the answers so far say was used, at the known prices.
func (m *Meter) Used() agents.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// Changed gets a value after Used has grown.
func (m *Meter) Changed() <-chan struct{} { return m.changed }

// Warnings says, once, which models' cost is not in Used although it is limited.
func (m *Meter) Warnings() (lines []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.budget.CostUSD > 0 {
		for _, model := range slices.Sorted(maps.Keys(m.unpriced)) {
			lines = append(lines, fmt.Sprintf("the price of model %s is not known, so the cost budget does not limit it; a token budget does", model))
		}
	}
	clear(m.unpriced)
	return lines
}

// admit refuses a request that nothing is left for.
func (m *Meter) admit(_, _ string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.budget.Spent(m.used) {
		return errors.New("the budget of this run is spent")
	}
	return nil
}

// answer counts one answer.
func (m *Meter) answer(contentType, path string) io.Writer {
	return &answer{of: m, read: meter.New(contentType, path)}
}

// answer is one answer of the service. It belongs to one goroutine.
type answer struct {
	of   *Meter
	read *meter.Answer
	used agents.Usage // of it, so far
}

// Write never fails.
func (a *answer) Write(p []byte) (int, error) {
	n, err := a.read.Write(p)
	used, model, seen := a.read.Usage()
	if !seen {
		return n, err
	}
	cost, known := a.of.prices.Cost(model, used)
	used.CostUSD = cost
	if more := used.Less(a.used); more != (agents.Usage{}) {
		a.used = used
		a.of.add(more, model, known)
	}
	return n, err
}

func (m *Meter) add(more agents.Usage, model string, known bool) {
	m.mu.Lock()
	m.used = m.used.Add(more)
	if !known && model != "" { // its name may come behind what it used
		m.unpriced[model] = true
	}
	m.mu.Unlock()
	select {
	case m.changed <- struct{}{}:
	default:
	}
}
