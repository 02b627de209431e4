package gateway

import (
	"context"
	"sync"

	"github.com/ralph-pool/ralph/agents"
)

// Booking tells other machines in advance what a run may use. When the run dies they count all that was booked, so that nothing
// of what it used is missing. It is safe for concurrent use. A nil Booking tells nobody.
type Booking struct {
	before agents.Usage // used by the run before its meters began
	step   agents.Usage // booked at a time, on top of what is needed; zero where nothing is limited
	write  func(ctx context.Context, sum agents.Usage) error

	mu      sync.Mutex   // held while a sum is written
	sum     agents.Usage // guarded by mu
	passing int          // guarded by mu; requests that were admitted and have not ended
	largest agents.Usage // guarded by mu; of one answer
}

// NewBooking makes the booking of a run which has used something before. write makes a sum known; when it fails no request passes.
func NewBooking(before, step agents.Usage, write func(ctx context.Context, sum agents.Usage) error) *Booking {
	return &Booking{before: before, step: step, write: write, sum: before}
}

// Book makes the meter book its requests, and those of meters beside it. It may be called at any time.
func (m *Meter) Book(b *Booking) { m.booking.Store(b) }

func (m *Meter) booked() *Booking {
	if m.beside != nil {
		return m.beside.booking.Load()
	}
	return m.booking.Load()
}

// ofRun is what this meter and the one beside it have counted.
func (m *Meter) ofRun() agents.Usage {
	if m.beside == nil {
		return m.Used()
	}
	return m.Used().Add(m.beside.Used())
}

// AtLeast is what others have to count for a run that has used so much: no less than was booked.
func (b *Booking) AtLeast(used agents.Usage) agents.Usage {
	if b == nil {
		return used
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sum.Tokens() > used.Tokens() {
		used.Input += b.sum.Tokens() - used.Tokens()
	}
	used.CostUSD = max(used.CostUSD, b.sum.CostUSD)
	return used
}

// begin books one more request of a run whose meters have counted so much. A request is taken to need what the largest did.
func (b *Booking) begin(ctx context.Context, used agents.Usage) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	need := b.before.Add(used)
	for range b.passing + 1 {
		need = need.Add(b.largest)
	}
	if sum := need.Add(b.step); b.sum == b.before || !b.covers(need) {
		if err := b.write(ctx, sum); err != nil {
			return err
		}
		b.sum = sum
	}
	b.passing++
	return nil
}

// end says that a request which was booked is over, and what it has used.
func (b *Booking) end(used agents.Usage) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passing--
	b.largest = b.largest.Larger(agents.Usage{Input: used.Tokens(), CostUSD: used.CostUSD})
}

// covers reports whether what is booked has room for so much, of what is limited. mu is held.
func (b *Booking) covers(used agents.Usage) bool {
	return (b.step.Tokens() == 0 || b.sum.Tokens() >= used.Tokens()) && (b.step.CostUSD == 0 || b.sum.CostUSD >= used.CostUSD)
}
