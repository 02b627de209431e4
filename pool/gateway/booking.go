package gateway

import (
	"context"
	"sync"

	"github.com/ralph-pool/ralph/agents"
)

// Booking reports to other machines in advance how much a run may use. If the run dies, they count the whole booked amount,
// so that no usage is missed. It is safe for concurrent use. A nil Booking does nothing.
type Booking struct {
	before agents.Usage // usage of the run before its meters began
	step   agents.Usage // amount that is booked in addition to the need; zero without limits
	write  func(ctx context.Context, sum agents.Usage) error

	mu         sync.Mutex   // held while a sum is written
	sum        agents.Usage // guarded by mu; booked so far
	inProgress int          // guarded by mu; admitted requests that have not ended
	largest    agents.Usage // guarded by mu; usage of the largest answer
}

// NewBooking makes the booking of a run that has used before so far. write publishes a new sum; if it fails, the request is
// refused.
func NewBooking(before, step agents.Usage, write func(ctx context.Context, sum agents.Usage) error) *Booking {
	return &Booking{before: before, step: step, write: write, sum: before}
}

// Book makes the meter book its requests, and also those of the meters beside it. It may be called at any time.
func (m *Meter) Book(b *Booking) { m.booking.Store(b) }

func (m *Meter) runBooking() *Booking {
	if m.sibling != nil {
		return m.sibling.booking.Load()
	}
	return m.booking.Load()
}

// runUsage returns the sum counted by this meter and the one beside it.
func (m *Meter) runUsage() agents.Usage {
	if m.sibling == nil {
		return m.Used()
	}
	return m.Used().Add(m.sibling.Used())
}

// AtLeast returns the usage that others must count for a run: used, or what was booked if that is more.
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

// begin books one more request. used is the usage that the run's meters have counted. A request is assumed to need as much
// as the largest so far.
func (b *Booking) begin(ctx context.Context, used agents.Usage) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	need := b.before.Add(used)
	for range b.inProgress + 1 {
		need = need.Add(b.largest)
	}
	if sum := need.Add(b.step); b.sum == b.before || !b.covers(need) {
		if err := b.write(ctx, sum); err != nil {
			return err
		}
		b.sum = sum
	}
	b.inProgress++
	return nil
}

// end records the end of a booked request, and its usage.
func (b *Booking) end(used agents.Usage) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inProgress--
	b.largest = b.largest.Larger(agents.Usage{Input: used.Tokens(), CostUSD: used.CostUSD})
}

// covers reports whether the booked amount covers used, where use is limited. The caller holds mu.
func (b *Booking) covers(used agents.Usage) bool {
	return (b.step.Tokens() == 0 || b.sum.Tokens() >= used.Tokens()) && (b.step.CostUSD == 0 || b.sum.CostUSD >= used.CostUSD)
}
