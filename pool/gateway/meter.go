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

// Meter counts what one run uses of its model service, from the answers that pass ralph, and lets no request pass that
// nothing is left for. It may be used from several goroutines.
type Meter struct {
	prices  ledger.Prices
	account *ledger.Account
	run     string
	beside  *Meter // counts the rest of the run; nil: this one counts all of it
	booking atomic.Pointer[Booking]
	changed chan struct{}

	mu       sync.Mutex
	budget   loop.Budget     // guarded by mu
	used     agents.Usage    // guarded by mu
	unseen   agents.Usage    // guarded by mu; the part of used that only an agent reports
	passed   loop.Passed     // guarded by mu; since Limit was last called
	served   bool            // guarded by mu; since then an answer was no refusal
	open     int             // guarded by mu; requests that are not over
	model    string          // guarded by mu; that answered last
	unpriced map[string]bool // guarded by mu; models whose price is not known
}

// NewMeter makes the meter of a run, which has counted nothing. It takes prices and account of the network.
func NewMeter(n Network, run string) *Meter {
	return &Meter{
		prices: ledger.Builtin().With(n.Prices), account: n.Account, run: run, changed: make(chan struct{}, 1), unpriced: map[string]bool{},
	}
}

// Beside makes the account know that another meter, which may be nil, counts the rest of the run. It returns m.
func (m *Meter) Beside(other *Meter) *Meter {
	m.beside = other
	return m
}

// whole is what counts of the run for the caps of all runs when this meter's part of it is so much. What only an agent
// reports, although its service's answers passed, is left out: one that lies would stop all others.
func (m *Meter) whole(used agents.Usage) agents.Usage {
	if m.beside == nil {
		return used
	}
	m.beside.mu.Lock()
	defer m.beside.mu.Unlock()
	return used.Add(m.beside.used.Less(m.beside.unseen))
}

// Limit lets the service be asked no more once Used has reached the budget.
func (m *Meter) Limit(b loop.Budget) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.budget, m.passed, m.served = b, loop.Passed{}, false
}

// Passed is what has passed since Limit was last called. Tokens count in it whether read from the cache or not.
func (m *Meter) Passed() loop.Passed {
	m.mu.Lock()
	defer m.mu.Unlock()
	passed := m.passed
	passed.Free = passed.Answers && !m.served && m.open == 0
	return passed
}

// Full says why no run may spend more when this one has used so much, as its agent may say; nil: they may.
func (m *Meter) Full(ctx context.Context, used agents.Usage) error {
	m.mu.Lock()
	seen := used.Less(m.unseen).Larger(m.used.Less(m.unseen))
	m.mu.Unlock()
	m.account.Count(m.run, m.whole(seen), agents.Usage{})
	_, err := m.account.Left(ctx, agents.Usage{})
	if _, spent := errors.AsType[*ledger.SpentError](err); spent {
		return err
	}
	return nil // what cannot be read lets no request pass, and ends nothing
}

// Used is what the answers so far say was used, at the known prices.
func (m *Meter) Used() agents.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// Changed gets a value after Used has grown.
func (m *Meter) Changed() <-chan struct{} { return m.changed }

// Notices says, once, which models' cost is not in Used although it is limited.
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

// admit refuses a request that nothing is left for. One that uses no tokens is not followed: it has no exchange.
func (m *Meter) admit(ctx context.Context, method, path string) (*exchange, error) {
	if err := m.spent(); err != nil || method != http.MethodPost || meter.Free(path) {
		return nil, err // what is fetched again was counted before
	}
	if err := m.account.Admit(ctx); err != nil {
		return nil, err
	}
	if err := m.spent(); err != nil { // while it waited
		m.account.End()
		return nil, err
	}
	if err := m.booked().begin(ctx, m.ofRun()); err != nil {
		m.account.End()
		return nil, err
	}
	m.mu.Lock()
	m.open++
	m.mu.Unlock()
	return &exchange{of: m, path: path, store: func() { m.account.Store(context.WithoutCancel(ctx)) }}, nil
}

func (m *Meter) spent() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.budget.Spent(m.used) {
		return errors.New("the budget of this run is spent")
	}
	return nil
}

// exchange is one request to the service, with its answer.
type exchange struct {
	of      *Meter
	store   func() // what the run has used
	path    string
	limited func()        // is told when the service refuses the request as one too many, or for overload; may be nil
	answer  *meter.Answer // nil: there is none yet
	failed  bool          // the service has refused the request
	used    agents.Usage  // so far
	odd     bool          // a model without a known price has answered
	sent    atomic.Int64  // bytes, once the service has the whole request
}

// Request counts the request.
func (x *exchange) Request(body io.ReadCloser) io.ReadCloser {
	return &request{ReadCloser: body, whole: &x.sent}
}

// request is the body of a request, on its way to the service.
type request struct {
	io.ReadCloser
	read  int64
	whole *atomic.Int64
}

// Read reads on.
func (r *request) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.read += int64(n)
	if errors.Is(err, io.EOF) {
		r.whole.Store(r.read)
	}
	return n, err
}

// Answer counts one answer.
func (x *exchange) Answer(status int, contentType string) io.Writer {
	x.answer, x.failed = meter.New(contentType, x.path), status/100 != 2
	if x.limited != nil && (status == http.StatusTooManyRequests || status == overloaded) {
		x.limited()
	}
	return x
}

// Write never fails.
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

// End counts what the service was asked for and has not stated: nobody spends unseen by hanging up.
func (x *exchange) End() {
	defer x.store() // while the agent reads the end of the answer, and not before its next request
	defer x.of.account.End()
	defer func() { x.of.booked().end(x.used) }()
	free := x.failed || x.answer == nil && x.sent.Load() == 0
	defer func() { x.of.answered(x.odd, !free || x.used != (agents.Usage{})) }()
	if x.failed {
		return
	}
	if x.answer == nil {
		x.answer = meter.New("", x.path)
	}
	if used, model := x.answer.Estimated(x.sent.Load()); used != (agents.Usage{}) {
		x.count(used, cmp.Or(model, x.of.lastModel()), true)
	}
}

// count counts what the answer has used so far, or in all when it is final: a model's name may come behind what it used.
func (x *exchange) count(used agents.Usage, model string, final bool) {
	cost, known := x.of.cost(model, used, ledger.Terms(x.answer.Terms()))
	used.CostUSD, x.odd = cost, model != "" && !known
	if final && !known {
		used.Unpriced = used.Tokens()
	}
	if more := used.Less(x.used); more != (agents.Usage{}) {
		x.used = x.used.Add(more)
		x.of.add(more, used)
	}
}

// cost is what an answer of a model costs, and notes where nobody knows.
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

// answered notes that an answer of the service has passed; served says that it was no refusal.
func (m *Meter) answered(unpriced, served bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open--
	m.served = m.served || served
	m.passed.Answers, m.passed.Unpriced = true, m.passed.Unpriced || unpriced
}

// Add counts what was used for the run elsewhere, such as by whoever reviews its work, and the part of it that only an agent
// reports.
func (m *Meter) Add(used, unseen agents.Usage) {
	m.mu.Lock()
	m.unseen = m.unseen.Add(unseen)
	m.mu.Unlock()
	m.add(used, agents.Usage{})
}

// add counts what an answer has used more than before.
func (m *Meter) add(more, answer agents.Usage) {
	m.mu.Lock()
	m.used = m.used.Add(more)
	if answer != (agents.Usage{}) {
		m.passed.Answers, m.passed.Largest = true, max(m.passed.Largest, answer.Tokens()+answer.CacheRead)
	}
	m.account.Count(m.run, m.whole(m.used.Less(m.unseen)), answer)
	m.mu.Unlock()
	select {
	case m.changed <- struct{}{}:
	default:
	}
}
