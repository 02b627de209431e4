package pool_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
)

// A run that fills the disk is ended, whichever call began it, and no other run begins.
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

// An attempt that continues from earlier commits and finds the disk full has met a fault of every run. With room on the disk, the
// same error of git proves nothing: the commits can cause it.
func TestFullDiskOnEarlierCommits(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]bool{"full": true, "with room": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; echo work > work; git add -A; git commit -qm work; exit 1`)
			f.write(".gitattributes", "README filter=f\n")
			f.commit("attributes")
			f.Config.MinFree, f.Config.Run.MaxIterations = 16<<20, 1
			f.Config.Run.Retry.Backoff = -1
			f.issue("a")
			if r := f.one(); r.Commits != 1 {
				t.Fatalf("%+v", r)
			}
			tried := filepath.Join(t.TempDir(), "tried")
			f.git(f.repo, "config", "filter.f.smudge", "touch "+tried+"; echo 'fatal: write error: No space left on device' >&2; false")
			f.git(f.repo, "config", "filter.f.required", "true")
			p := f.pool()
			p.Disk().Room = func(string) (disk.Room, error) {
				if _, err := os.Stat(tried); err == nil && full {
					return disk.Room{}, nil
				}
				return disk.Room{Bytes: 17 << 20}, nil
			}
			s := f.sweepBy(t.Context(), p, "a")
			if r := f.only(s); r.Facts.Open == nil || (r.Facts.Open.Kind == journal.FaultSandbox) != full || (s.Unavailable != nil) != full {
				t.Errorf("%+v, %+v, %v", r.Verdict, r.Facts.Open, s.Unavailable)
			}
		})
	}
}

// A failed import says nothing about the issue if the disk was full, whatever git's error says.
func TestFullDiskAtImport(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]bool{"full": true, "with room": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "")
			blocked := filepath.Join(f.repo, ".git", "refs", "ralph", "work")
			f.Config.Run.Options.Command = []string{"sh", "-c", `cat >/dev/null; echo work > work; git add -A; git commit -qm work; rm -rf ` + blocked + `; echo x > ` + blocked}
			f.Config.MinFree, f.Config.Run.MaxIterations = 16<<20, 1
			f.issue("a")
			p := f.pool()
			p.Disk().Room = func(string) (disk.Room, error) {
				if _, err := os.Stat(blocked); err == nil && full {
					return disk.Room{}, nil
				}
				return disk.Room{Bytes: 17 << 20}, nil
			}
			s := f.sweepBy(t.Context(), p, "a")
			r := f.only(s)
			if r.Facts.End != loop.EndImport || r.Facts.Starved != full || r.Verdict.Outcome.Unavailable() != full || (s.Unavailable != nil) != full {
				t.Errorf("%+v, %s, %v", r.Verdict, r.Facts.End, s.Unavailable)
			}
		})
	}
}

// An agent that fills the disk and ends before the next look at it has not met a fault of the machine: the run is the cause.
func TestDiskIsFilledAtTheEnd(t *testing.T) {
	t.Parallel()
	full := filepath.Join(t.TempDir(), "full")
	f := newFixture(t, `cat >/dev/null; echo work > work; git add -A; git commit -qm work; head -c 8388608 /dev/zero > big; echo x > `+full+`; exit 1`)
	f.Config.MinFree, f.Config.Run.MaxIterations = 16<<20, 1
	f.issue("a")
	p := f.pool()
	p.Disk().Room = func(string) (disk.Room, error) {
		if _, err := os.Stat(full); err == nil {
			return disk.Room{}, nil
		}
		return disk.Room{Bytes: 1 << 40}, nil
	}
	if r := f.only(f.sweepBy(t.Context(), p, "a")); r.Facts.Stop != journal.StopDisk || r.Verdict.Outcome != journal.OverBudget {
		t.Errorf("stopped by %q, %+v", r.Facts.Stop, r.Verdict)
	}
}
