package gateway

import (
	"cmp"
	"context"
	"errors"
	"io"
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
	budget   loop.Budget          // guarded by mu
	used     agents.Usage         // guarded by mu
	unseen   agents.Usage         // guarded by mu; the part of used that only an agent reports
	passed   loop.MeteredRequests // guarded by mu; since the last call of Limit
	served   bool                 // guarded by mu; since then the service has given an answer and not only refusals
	open     int                  // guarded by mu; requests that have not ended
	model    string               // guarded by mu; model of the last answer
	unpriced map[string]bool      // guarded by mu; models with unknown prices
}

// NewMeter makes the meter of a run, with nothing counted. It uses prices and account of the network.
func NewMeter(n Network, run string) *Meter {
	return &Meter{
		prices: ledger.Builtin().With(n.Prices), account: n.Account, run: run, changed: make(chan struct{}, 1), unpriced: map[string]bool{},
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
	m.budget, m.passed, m.served = b, loop.MeteredRequests{}, false
}

// Requests describes the answers since the last call of Limit. Its tokens include those read from the cache.
func (m *Meter) Requests() loop.MeteredRequests {
	m.mu.Lock()
	defer m.mu.Unlock()
	passed := m.passed
	passed.UsedNothing = passed.Answered && !m.served && m.open == 0
	return passed
}

// SharedLimitError returns why no run may use more after this run has used so much, or nil. used may include an agent's own reports.
func (m *Meter) SharedLimitError(ctx context.Context, used agents.Usage) error {
	m.mu.Lock()
	seen := used.Minus(m.unseen).Larger(m.used.Minus(m.unseen))
	m.mu.Unlock()
	m.account.Count(m.run, m.runUsageForCaps(seen), agents.Usage{})
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

// Notices returns a notice, once, for each model whose cost is limited but unknown.
func (m *Meter) Notices() (list []sandboxes.Notice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.budget.CostUSD > 0 {
		for _, model := range slices.Sorted(maps.Keys(m.unpriced)) {
			list = append(list, sandboxes.Noticef("the price of model %s is not known, "+
				"so the cost budget does not limit it; a token budget does", model))
		}
	}
	clear(m.unpriced)
	return list
}

// admit refuses a request if the budget is used up. It returns no exchange for a request that uses no tokens.
func (m *Meter) admit(ctx context.Context, method, path string) (*exchange, error) {
	if err := m.checkBudget(); err != nil || method != http.MethodPost || meter.Free(path) {
		return nil, err // only a POST uses tokens: a fetched answer was counted before
	}
	if err := m.account.Admit(ctx); err != nil {
		return nil, err
	}
	if err := m.checkBudget(); err != nil { // checked again after waiting for the account
		m.account.End()
		return nil, err
	}
	if err := m.runBooking().begin(ctx, m.runUsage()); err != nil {
		m.account.End()
		return nil, err
	}
	m.mu.Lock()
	m.open++
	m.mu.Unlock()
	return &exchange{meter: m, path: path, store: func() { m.account.Store(context.WithoutCancel(ctx)) }}, nil
}

func (m *Meter) checkBudget() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.budget.Exhausted(m.used) {
		return errors.New("the budget of this run is spent")
	}
	return nil
}

// exchange is one request to the service with its answer.
type exchange struct {
	meter    *Meter
	store    func() // stores the run's usage
	path     string
	limited  func()        // is called if the service refuses the request because of a rate limit or overload; may be nil
	answer   *meter.Answer // nil: no answer yet
	failed   bool          // the service refused the request
	used     agents.Usage  // usage so far
	unpriced bool          // a model with an unknown price has answered
	sent     atomic.Int64  // bytes of the request, once the service has all of it
}

// Request wraps the request's body to count its bytes.
func (x *exchange) Request(body io.ReadCloser) io.ReadCloser {
	return &request{ReadCloser: body, whole: &x.sent}
}

// request counts the bytes of a request's body.
type request struct {
	io.ReadCloser
	read  int64
	whole *atomic.Int64
}

// Read implements io.Reader.
func (r *request) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.read += int64(n)
	if errors.Is(err, io.EOF) {
		r.whole.Store(r.read)
	}
	return n, err
}

// Answer returns a writer that reads the usage from the answer.
func (x *exchange) Answer(status int, contentType string) io.Writer {
	x.answer, x.failed = meter.New(contentType, x.path), status/100 != 2
	if x.limited != nil && (status == http.StatusTooManyRequests || status == overloaded) {
		x.limited()
	}
	return x
}

// Write implements io.Writer. It never fails.
func (x *exchange) Write(p []byte) (int, error) {
	before := x.answer.Reads()
	n, err := x.answer.Write(p)
	if x.answer.Reads() == before {
		return n, err
	}
	if used, model, seen := x.answer.Usage(); seen {
		x.count(used, model, false)
	}
	return n, err
}

// End counts usage that the service has not reported: an agent must not avoid being counted by closing the connection.
func (x *exchange) End() {
	defer x.store() // runs while the agent reads the end of the answer, and before its next request
	defer x.meter.account.End()
	defer func() { x.meter.runBooking().end(x.used) }()
	free := x.failed || x.answer == nil && x.sent.Load() == 0
	defer func() { x.meter.noteAnswer(x.unpriced, !free || x.used != (agents.Usage{})) }()
	if x.failed {
		return
	}
	if x.answer == nil {
		x.answer = meter.New("", x.path)
	}
	if used, model := x.answer.Estimated(x.sent.Load()); used != (agents.Usage{}) {
		x.count(used, cmp.Or(model, x.meter.lastModel()), true)
	}
}

// count counts the answer's usage so far, or its total if final: the model's name may follow the usage.
func (x *exchange) count(used agents.Usage, model string, final bool) {
	cost, known := x.meter.cost(model, used, ledger.Terms(x.answer.Terms()))
	used.CostUSD, x.unpriced = cost, model != "" && !known
	if final && !known {
		used.Unpriced = used.Tokens()
	}
	if more := used.Minus(x.used); more != (agents.Usage{}) {
		x.used = x.used.Add(more)
		x.meter.addUsage(more, used)
	}
}

// cost returns the cost of an answer, and records models without a known price.
func (m *Meter) cost(model string, used agents.Usage, terms ledger.Terms) (usd float64, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if model == "" {
		return 0, false
	}
	m.model = model
	price, known := m.prices.Of(model)
	if known {
		usd, known = price.Cost(used, terms)
	}
	if !known {
		if !terms.Standard() {
			model += " in service tier " + terms.Tier
		}
		m.unpriced[model], m.passed.Unpriced = true, true
	}
	return usd, known
}

func (m *Meter) lastModel() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.model
}

// noteAnswer records that an answer has passed; served says that it was not a refusal.
func (m *Meter) noteAnswer(unpriced, served bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open--
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
		m.passed.Answered, m.passed.LargestRequest = true, max(m.passed.LargestRequest, answer.Tokens()+answer.CacheRead)
	}
	m.account.Count(m.run, m.runUsageForCaps(m.used.Minus(m.unseen)), answer)
	m.mu.Unlock()
	select {
	case m.changed <- struct{}{}:
	default:
	}
}
