package fleet

import (
	"context"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/tracker"
)

// BenchmarkRow measures the cost of the queue per issue: its row is planned, inserted, fetched, worked and ended, and its
// record is saved as often as that of a run without a gate. The run itself does nothing. The CPU time is that of this
// process and of the server.
func BenchmarkRow(b *testing.B) {
	f, err := Start(b.Context(), Config{Database: migrated(b), Plan: true, Work: true})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Stop()
	const saves, parallel = 8, 4
	j, done := f.Journal("p", &journaltest.Memory{}), make(chan error)
	s := newServed(Project{Name: "p", Claims: held{}, Parallel: parallel, Poll: time.Hour})
	s.do = func(ctx context.Context, r row) (out pool.Result, err error) {
		for range saves {
			rec := journal.Record{Run: journal.Run{ID: r.Key, Key: r.Key, Kind: journal.KindIssue, Started: time.Now()}}
			if err = j.Save(ctx, rec); err != nil {
				break
			}
		}
		done <- err
		return out, err
	}
	if err := f.add(s); err != nil {
		b.Fatal(err)
	}
	if err := f.announce(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := f.client.Queues().Add(queueOf("p"), river.QueueConfig{MaxWorkers: parallel}); err != nil {
		b.Fatal(err)
	}
	var plan backlog.Plan
	for n := range b.N {
		plan.Work = append(plan.Work, tracker.Issue{Key: strconv.Itoa(n)})
	}
	ctx, end := context.WithCancelCause(b.Context())
	p := planningOf(f, s)
	p.maintain = func(context.Context) (backlog.Plan, error) { return plan, nil }
	before := used(b)
	b.ResetTimer()
	over := make(chan struct{})
	go func() {
		defer close(over)
		p.run(ctx)
	}()
	for range b.N {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	settled(j)
	b.ReportMetric(float64(used(b)-before)/float64(b.N)/1e6, "CPU-ms/op")
	end(nil)
	<-over
}

// used returns the CPU time of this process and of the server.
func used(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	there, err := server.CPU()
	if err != nil {
		b.Fatal(err)
	}
	return there + time.Duration(u.Utime.Nano()+u.Stime.Nano())
}
