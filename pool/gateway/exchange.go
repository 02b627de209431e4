package gateway

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/meter"
	"github.com/ralph-pool/ralph/pool/ledger"
)

// exchange is one request to the service with its answer.
type exchange struct {
	meter     *Meter
	ctx       context.Context // ends when the agent hangs up
	from      *caller         // may be nil
	number    int             // of the request, in the meter
	path      string
	size      int // bytes of the request
	asked     meter.Request
	need      agents.Usage  // the most that the request may use
	model     string        // named by the request; empty: none
	limited   func()        // is called if the service refuses the request because of a rate limit or overload; may be nil
	answer    *meter.Answer // nil: no answer yet
	complete  bool          // the service has ended the answer
	failed    bool          // the service refused the request
	refusal   *refusal      // how, if it did
	unreached string        // why the service could not be reached, with its address
	last      []byte        // end of the answer so far
	used      agents.Usage  // usage so far
	unpriced  bool          // a model with an unknown price has answered
	sent      atomic.Bool   // the service may have the whole request
}

// Request wraps the request's body to see whether it was sent.
func (x *exchange) Request(body io.ReadCloser) io.ReadCloser {
	return &request{ReadCloser: body, left: x.size, sent: &x.sent}
}

// request is the body of a request.
type request struct {
	io.ReadCloser
	left int // bytes that were not read
	sent *atomic.Bool
}

// Read implements io.Reader.
func (r *request) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.left -= n; r.left <= 0 {
		r.sent.Store(true)
	}
	return n, err
}

// Answer wraps the answer's body to read the usage from it.
func (x *exchange) Answer(in *http.Response) io.ReadCloser {
	x.answer, x.failed = meter.New(in.Header.Get("Content-Type"), x.path), in.StatusCode/100 != 2
	if x.failed {
		x.refusal = &refusal{class: agents.StatusClass(int64(in.StatusCode)), header: in.Header.Clone()}
		x.noteRefusal()
	}
	if x.limited != nil && (in.StatusCode == http.StatusTooManyRequests || in.StatusCode == overloaded) {
		x.limited()
	}
	return &answer{in.Body, x}
}

// Unreached notes that the service could not be reached.
func (x *exchange) Unreached(address, why string) {
	x.unreached = address + " cannot be reached: " + why
}

// answer is the body of an answer.
type answer struct {
	io.ReadCloser
	exchange *exchange
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	a.exchange.read(p[:n])
	a.exchange.complete = a.exchange.complete || errors.Is(err, io.EOF)
	return n, err
}

func (x *exchange) noteRefusal() {
	if end, unavailable := x.refusal.limit(time.Now()); unavailable {
		x.meter.noteRefusal(x, end)
	}
}

// read takes the next piece of the answer.
func (x *exchange) read(p []byte) {
	if x.failed {
		x.refusal.read(p)
		x.noteRefusal() // before the agent can end because of it
	} else {
		last := p[max(0, len(p)-maxError):]
		x.last = append(slices.Delete(x.last, 0, max(0, len(x.last)+len(last)-maxError)), last...)
	}
	before := x.answer.Reads()
	_, _ = x.answer.Write(p)
	if x.answer.Reads() == before {
		return
	}
	if used, model, seen := x.answer.Usage(); seen {
		x.count(used, model, false)
	}
}

// End counts usage that the service has not reported: an agent must not avoid being counted by closing the connection.
func (x *exchange) End() {
	defer x.meter.account.Store(context.WithoutCancel(x.ctx)) // while the agent reads the end of the answer, and before its next request
	defer x.meter.account.End(x.need)
	defer func() { x.meter.runBooking().end(x.used) }()
	free := x.failed || x.answer == nil && !x.sent.Load()
	switch {
	case x.broken():
		x.meter.noteRefusal(x, time.Time{})
	case !x.failed && x.answer != nil && (x.complete || x.answer.Finished()):
		x.meter.noteSuccess(x)
	}
	defer func() {
		x.meter.noteAnswer(x.unpriced, !free || x.used != (agents.Usage{}))
		x.meter.release(x.need)
	}()
	if free {
		return
	}
	if x.answer == nil {
		x.answer = meter.New("", x.path)
		if x.ctx.Err() == nil { // the service, and not the agent, has broken the connection
			x.asked.Most.Output = 0
		}
	}
	if used, model := x.answer.Estimated(x.asked, x.complete); used != (agents.Usage{}) {
		last, _ := x.meter.last()
		x.count(used, cmp.Or(model, x.model, last), true)
	}
}

// broken reports whether the service, and not the agent, has broken off the answer, or has not begun one.
func (x *exchange) broken() bool {
	switch {
	case x.ctx.Err() != nil || x.failed:
		return false
	case x.answer == nil:
		return true
	}
	return !x.answer.Finished() && (!x.complete || unavailable().Match(x.last))
}

// count counts the answer's usage so far, or its total if final: the model's name may follow the usage.
func (x *exchange) count(used agents.Usage, model string, final bool) {
	answer, known, assumed := used, false, false
	if model != "" || final {
		used.CostUSD, known, assumed = x.meter.cost(x.from, model, used, ledger.Terms(x.answer.Terms()))
	}
	if x.unpriced = !known && model != ""; final && !known {
		used.Unpriced = used.Tokens()
	}
	if assumed {
		used.Estimated = used.Tokens()
	}
	if final {
		x.meter.noteAnswered(x.from, model)
	}
	if more := used.Minus(x.used); more != (agents.Usage{}) {
		x.used = x.used.Add(more)
		x.meter.addUsage(more, answer)
	}
}
