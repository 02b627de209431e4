package job

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/pool/internal/halt"
)

// All steps left after Kill have one limit together, however many there are and wherever they hang.
func TestKillBoundsWhatIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kill := make(chan struct{})
		hard, done := Job{Kill: kill}.killContext(t.Context())
		close(kill)
		<-hard.Done()
		start := time.Now()
		for range 10 {
			step, cancel := halt.Hurried(hard)
			<-step.Done()
			cancel()
			step, cancel = halt.ForRelease(hard)
			<-step.Done()
			cancel()
		}
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("the steps took %s", took)
		}
		done()
	})
}
