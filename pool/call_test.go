package pool

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/journal"
)

// All steps left after Kill have one limit together, however many there are and wherever they hang.
func TestKillBoundsWhatIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &Worker{bus: journal.NewBus(nil)}
		w.lifetime, w.kill = context.WithCancelCause(t.Context())
		s, done := w.beginCall(t.Context(), nil)
		w.Kill()
		start := time.Now()
		for range 10 {
			step, cancel := halt.Hurried(s.hard)
			<-step.Done()
			cancel()
			step, cancel = halt.ForRelease(s.hard)
			<-step.Done()
			cancel()
		}
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("the steps took %s", took)
		}
		done()
	})
}
