package gateway

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/meter"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/sandboxes"
)

// Meter counts a run's usage of its model service from the answers that pass through ralph, and refuses requests once the
// budget is used up. It is safe for concurrent use.
type Meter struct {
	prices  ledger.Prices
	account *ledger.Account
	run     string
	sibling *Meter // counts the rest of the run; nil: this meter counts all of it
	booking atomic.Pointer[Booking]
	changed chan struct{}

	mu       sync.Mutex
	budget   loop.Budget            // guarded by mu
	used     agents.Usage           // guarded by mu
	unseen   agents.Usage           // guarded by mu; the part of used that only an agent reports
	passed   loop.MeteredRequests   // guarded by mu; since the last call of Limit
	served   bool                   // guarded by mu; since then the service has given an answer and not only refusals
	open     int                    // guarded by mu; requests that have not ended
	reserved agents.Usage           // guarded by mu; the most that they may use
	ended    chan struct{}          // guarded by mu; closed when one of them ends
	model    string                 // guarded by mu; model of the last answer
	terms    ledger.Terms           // guarded by mu; its service tier and region
	admitted int                    // guarded by mu; number of requests so far
	refusals []refused              // guarded by mu; since the last call of Limit
	mains    map[mainOf]string      // guarded by mu; models
	notices  []sandboxes.Notice     // guarded by mu
	tell     func(sandboxes.Notice) // guarded by mu; may be nil
}

// NewMeter makes the meter of a run, with nothing counted. It uses prices and account of the network.
func NewMeter(n Network, run string) *Meter {
	return &Meter{
		prices: ledger.Builtin().With(n.Prices), account: n.Account, run: run, changed: make(chan struct{}, 1), ended: make(chan struct{}),
		mains: map[mainOf]string{},
	}
}

// IncludeMeter makes the meter include, in reports to the account, the rest of the run that another meter counts, which may be
// nil. It returns m.
func (m *Meter) IncludeMeter(other *Meter) *Meter {
	m.sibling = other
	return m
}

// runUsageForCaps returns the run's usage that counts for the caps of all runs, given this meter's part. It leaves out usage that
// only an agent reports although its service's answers pass through ralph: a lying agent could stop all other runs.
func (m *Meter) runUsageForCaps(used agents.Usage) agents.Usage {
	if m.sibling == nil {
		return used
	}
	m.sibling.mu.Lock()
	defer m.sibling.mu.Unlock()
	return used.Add(m.sibling.used.Minus(m.sibling.unseen))
}

// Limit makes the meter refuse requests once Used has reached the budget.
func (m *Meter) Limit(b loop.Budget) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.budget, m.passed, m.served, m.refusals = b, loop.MeteredRequests{}, false, nil
}

// Requests describes the answers since the last call of Limit. Its tokens include those read from the cache. Refusals only count
// for the agent's main model.
func (m *Meter) Requests(by agents.Link) loop.MeteredRequests {
	m.mu.Lock()
	defer m.mu.Unlock()
	passed := m.passed
	passed.UsedNothing = passed.Answered && !m.served && m.open == 0
	for _, r := range m.refusals {
		if m.concerns(r, by) {
			passed.Refused, passed.Unreached = true, r.unreached
			if r.end.After(passed.LimitEnd) {
				passed.LimitEnd = r.end
			}
		}
	}
	return passed
}

// SharedLimitError returns why no run may use more after this run has used so much, or nil. used may include an agent's own reports.
func (m *Meter) SharedLimitError(ctx context.Context, used agents.Usage) error {
	m.mu.Lock()
	seen := used.Minus(m.unseen).Larger(m.used.Minus(m.unseen))
	m.mu.Unlock()
	m.account.Count(m.run, m.runUsageForCaps(seen))
	_, err := m.account.Remaining(ctx, agents.Usage{})
	if _, spent := errors.AsType[*ledger.SpentError](err); spent {
		return err
	}
	return nil // if the account cannot be read, requests are refused but the run does not end
}

// Used returns the usage reported by the answers so far, at the known prices.
func (m *Meter) Used() agents.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// Changed returns a channel that gets a value after Used has grown.
func (m *Meter) Changed() <-chan struct{} { return m.changed }

// admit refuses a request if the budget is used up, and delays one that does not fit beside those that have not ended. It returns no
// exchange for a request that uses no tokens.
func (m *Meter) admit(ctx context.Context, from *caller, method, path string, body []byte) (*exchange, error) {
	if method != http.MethodPost || meter.Free(path) { // a fetched answer was counted before
		return nil, m.checkBudget()
	}
	q, limitsCost := meter.Asked(body, path), m.limitsCost()
	if err := m.checkModels(from, q, limitsCost); err != nil {
		return nil, err
	}
	x := &exchange{meter: m, ctx: ctx, from: from, path: path, size: len(body), asked: q, model: q.Model()}
	x.need = m.need(from, q, limitsCost)
	m.noteRequest(from, x.model)
	if err := m.reserve(ctx, x); err != nil {
		return nil, err
	}
	err := m.account.Admit(ctx, x.need)
	if err == nil {
		if err = m.checkBudget(); err == nil { // checked again after waiting for the account
			err = m.runBooking().begin(ctx, m.runUsage())
		}
		if err != nil {
			m.account.End(x.need)
		}
	}
	if err != nil {
		m.release(x.need)
		return nil, err
	}
	return x, nil
}

// need returns the most that a request may use. The service may choose tier and region, so those of the last answer count like
// those that the request names. Without a price the dearest one of the service counts if the cost is limited.
func (m *Meter) need(from *caller, q meter.Request, limitsCost bool) agents.Usage {
	lastModel, last := m.last()
	most := q.Most
	models := q.Models
	if len(models) == 0 {
		models = []string{lastModel}
	}
	need := most
	tiers, regions := slices.AppendSeq([]string{last.Tier}, maps.Keys(q.Tiers)), slices.AppendSeq([]string{last.Region}, maps.Keys(q.Regions))
	for _, model := range models {
		price, known := m.prices.Of(model)
		if !known && limitsCost {
			price = m.dearest(from)
		}
		usd, _ := price.Cost(most, ledger.Terms{})
		usd *= price.Dearest(tiers, regions)
		if limitsCost && !price.Covers(last) {
			usd = max(usd, price.Assumed(most, last))
		}
		need.CostUSD = max(need.CostUSD, usd)
	}
	return need
}

// limitsCost reports whether a budget or a cap is in US dollars.
func (m *Meter) limitsCost() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.budget.CostUSD > 0 || m.account.LimitsCost()
}

func (m *Meter) dearest(from *caller) ledger.Price {
	if from == nil {
		return m.prices.Dearest(nil)
	}
	return m.prices.Dearest(from.names.Families)
}

// reserve waits until the budget has room for the need of a request beside those that have not ended. A request may exceed
// the budget only if it is alone.
func (m *Meter) reserve(ctx context.Context, x *exchange) error {
	for {
		m.mu.Lock()
		if m.budget.Exhausted(m.used) {
			m.mu.Unlock()
			return errSpent
		}
		if m.open == 0 || !m.budget.Exhausted(m.used.Add(m.reserved).Add(x.need)) {
			m.open++
			m.admitted++
			x.number = m.admitted
			m.reserved = m.reserved.Add(x.need)
			m.mu.Unlock()
			return nil
		}
		ended := m.ended
		m.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// release ends the reservation of a request, and wakes those that wait.
func (m *Meter) release(need agents.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open--
	if m.reserved = m.reserved.Minus(need); m.open == 0 {
		m.reserved = agents.Usage{} // without the rest of the rounding
	}
	close(m.ended)
	m.ended = make(chan struct{})
}

var errSpent = errors.New("the budget of this run is spent")

func (m *Meter) checkBudget() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.budget.Exhausted(m.used) {
		return errSpent
	}
	return nil
}

// cost returns the cost of an answer. If it is limited, it is never unknown: then a price is assumed.
func (m *Meter) cost(from *caller, model string, used agents.Usage, terms ledger.Terms) (usd float64, known, assumed bool) {
	price, priced := m.prices.Of(model)
	if priced {
		usd, known = price.Cost(used, terms)
	}
	limitsCost := m.limitsCost()
	m.mu.Lock()
	if model != "" {
		m.model, m.terms = model, ledger.Terms{Tier: terms.Tier, Region: terms.Region}
		m.passed.Unpriced = m.passed.Unpriced || !known && !limitsCost
	}
	m.mu.Unlock()
	if known || !limitsCost {
		return usd, known, false
	}
	what, like := modelText(model), "the dearest known model of its service"
	if priced {
		what, like = what+" "+terms.String(), "its dearest known tier and region"
	} else {
		price = m.dearest(from)
	}
	m.note(sandboxes.Noticef("the price of %s is not known, so the cost budget counts that of %s", what, like))
	return price.Assumed(used, terms), true, true
}

// last returns the model of the last answer, with its service tier and region.
func (m *Meter) last() (model string, terms ledger.Terms) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.model, m.terms
}

// noteAnswer records that an answer has passed; served says that it was not a refusal.
func (m *Meter) noteAnswer(unpriced, served bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.served = m.served || served
	m.passed.Answered, m.passed.Unpriced = true, m.passed.Unpriced || unpriced
}

// Add adds usage of the run from elsewhere, for example of its reviewer, and the part of it that only an agent reports.
func (m *Meter) Add(used, unseen agents.Usage) {
	m.mu.Lock()
	m.unseen = m.unseen.Add(unseen)
	m.mu.Unlock()
	m.addUsage(used, agents.Usage{})
}

// addUsage counts the increase of an answer's usage.
func (m *Meter) addUsage(more, answer agents.Usage) {
	m.mu.Lock()
	m.used = m.used.Add(more)
	if answer != (agents.Usage{}) {
		m.passed.Answered, m.passed.LargestRequest = true, max(m.passed.LargestRequest, answer.Tokens()+answer.CacheRead-answer.Estimated)
	}
	m.account.Count(m.run, m.runUsageForCaps(m.used.Minus(m.unseen)))
	m.mu.Unlock()
	select {
	case m.changed <- struct{}{}:
	default:
	}
}
