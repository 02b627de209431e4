package fleet

import (
	"context"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/ralph-pool/ralph/pool"
)

// A row that a machine has taken and cannot work any more, because its slots are full or it is draining, is worked again.
func TestRowComesBack(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]error{"busy": pool.ErrBusy, "ended": pool.ErrEnded} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := Start(t.Context(), Config{Database: migrated(t), Plan: true, Work: true})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Stop()
			s := newServed(Project{Name: "p", Claims: held{}, Parallel: 1, Poll: time.Hour})
			calls, answers := make(chan struct{}), make(chan error, 2)
			answers <- why
			answers <- nil
			s.do = func(context.Context, row) (pool.Result, error) {
				calls <- struct{}{}
				return pool.Result{}, <-answers
			}
			if err := f.add(s); err != nil {
				t.Fatal(err)
			}
			if err := f.announce(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := f.client.Queues().Add(queueOf("p"), river.QueueConfig{MaxWorkers: 1}); err != nil {
				t.Fatal(err)
			}
			planningOf(f, s).mustFeed(t, "k")
			for call := range 2 {
				select {
				case <-calls:
				case <-time.After(time.Minute):
					t.Fatalf("call %d has not come; rows are %q", call+1, rows(t, f.db))
				}
			}
		})
	}
}
