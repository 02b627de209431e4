package pool_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
)

// A run that fills the disk is ended, whoever has begun it, and none is begun then.
func TestDiskIsWatched(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(context.Context, *pool.Pool) (pool.Result, error){
		"Work":        func(ctx context.Context, p *pool.Pool) (pool.Result, error) { return p.Work(ctx, "a") },
		"WorkPlanned": func(ctx context.Context, p *pool.Pool) (pool.Result, error) { return p.WorkPlanned(ctx, "a", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; head -c 8388608 /dev/zero > big; echo started; exec sleep 1000`)
			f.Config.MinFree = 16 << 20
			f.issue("a")
			p := f.pool()
			var full atomic.Bool
			p.Disk().Room = func(string) (disk.Room, error) {
				if full.Load() {
					return disk.Room{}, nil
				}
				return disk.Room{Bytes: 17 << 20}, nil
			}
			f.onStarted(func(string) { full.Store(true) })
			ctx, enough := context.WithTimeout(t.Context(), 20*time.Second)
			defer enough()
			if r, err := work(ctx, p); err != nil || r.Record.Facts.Stop != journal.StopDisk {
				t.Errorf("stopped by %q, %+v, %v", r.Record.Facts.Stop, r.Record.Verdict, err)
			}
			var short *disk.ShortError
			if r, err := work(ctx, p); !errors.As(err, &short) || !errors.As(r.Unavailable, &short) || len(f.runs("a")) != 1 {
				t.Errorf("with a full disk: %+v, %v", r, err)
			}
		})
	}
}
