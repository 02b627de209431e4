package fleet

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ralph-pool/ralph/pool/fleet/internal/address"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/archive"
)

// A run's folder is on its machine. After the run, the database gets a copy, so that every machine can show its logs.

// The last event of a run is written right after its record. The copy waits for it, but not longer than this.
const (
	endPause = 100 * time.Millisecond
	endTries = 50
)

// folders lists folders still to be copied. After a crash, the next process on this machine copies them.
type folders struct {
	mu      sync.Mutex
	list    []journal.Record // guarded by mu
	copying bool             // guarded by mu; copyFolders runs
}

// startCopying starts copying the folders of runs in the background.
func (j *Journal) startCopying(ended ...journal.Record) {
	j.folders.mu.Lock()
	defer j.folders.mu.Unlock()
	j.folders.list = append(j.folders.list, ended...)
	if !j.folders.copying && len(j.folders.list) > 0 {
		j.folders.copying = true
		j.f.background.Go(j.copyFolders)
	}
}

// Each try packs the whole folder, so the pause doubles up to longestPause. A leaving process copies for leaveTime.
const (
	longestPause = time.Minute
	leaveTime    = 3 * time.Second
)

// copyFolders copies folders until none is left or the process leaves.
func (j *Journal) copyFolders() {
	ctx, cancel := halt.Within(context.Background(), halt.Grace(j.f.member, leaveTime))
	defer cancel()
	again := syncTime
	for {
		j.folders.mu.Lock()
		if len(j.folders.list) == 0 {
			j.folders.copying = false
			j.folders.mu.Unlock()
			return
		}
		next := j.folders.list[0]
		j.folders.mu.Unlock()
		err := j.copyFolder(ctx, next)
		if err != nil {
			j.f.c.Log.Debug("folder of a run not copied to the database", "run", next.ID, "error", err)
		}
		away := err != nil && address.IsAway(err)
		j.folders.mu.Lock()
		j.folders.list = j.folders.list[1:]
		if away { // the folder may be the reason, for example its size: try the others first
			j.folders.list = append(j.folders.list, next)
		}
		j.folders.mu.Unlock()
		if ctx.Err() != nil || away && !j.pause(again) {
			return
		}
		if away {
			again = min(2*again, longestPause)
		} else {
			again = syncTime
		}
	}
}

// pause waits. It returns false if the process is leaving.
func (j *Journal) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-j.f.member.Done():
		return false
	}
}

func (j *Journal) copyFolder(ctx context.Context, r journal.Record) error {
	if _, err := os.Stat(r.Dir); err != nil {
		return nil //nolint:nilerr // it has been pruned, or its disk is gone: there is nothing to show
	}
	ended, read := false, int64(0)
	for range endTries {
		if ended, read = hasEnded(r.Dir, read); ended || !j.pause(endPause) {
			break
		}
	}
	content, err := archive.Pack(r.Dir)
	if err != nil || content == nil {
		return nil //nolint:nilerr // it has been pruned since
	}
	return j.f.db.batch(ctx, func(b *pgx.Batch) {
		b.Queue("DELETE FROM ralph_folder WHERE made_at < now() - interval '30 days'")
		b.Queue("INSERT INTO ralph_folder (project, run, content) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", j.shared.Project, r.ID, content)
	})
}

// hasEnded reports whether a run's folder has the final event after an offset, and returns the offset of later events.
func hasEnded(dir string, from int64) (ended bool, next int64) {
	err := journal.ReadEventsFrom(dir, from, func(e journal.Event, end int64) error {
		ended, next = ended || e.Kind == journal.EventEnded, end
		return nil
	})
	return ended || err != nil, max(from, next) // do not wait for an unreadable folder
}

// copyMissing starts copying the folders of this machine's runs that the database lacks.
func (j *Journal) copyMissing(ctx context.Context, here []journal.Record) error {
	here = slices.DeleteFunc(here, func(r journal.Record) bool { return r.Ended.IsZero() })
	var runs []string
	for _, r := range here {
		runs = append(runs, r.ID)
	}
	known, err := query(ctx, j.f.db, pgx.RowTo[string], "SELECT run FROM ralph_folder WHERE project = $1 AND run = ANY($2)", j.shared.Project, runs)
	if err == nil {
		j.startCopying(slices.DeleteFunc(here, func(r journal.Record) bool { return slices.Contains(known, r.ID) })...)
	}
	return err
}

// Folder returns the copy of a run's folder in the database, see [archive.Unpack]; nil if there is none of a valid size.
func (j *Journal) Folder(ctx context.Context, run string) ([]byte, error) {
	list, err := query(ctx, j.f.db, pgx.RowTo[[]byte], "SELECT content FROM ralph_folder WHERE project = $1 AND run = $2 AND octet_length(content) <= $3",
		j.shared.Project, run, archive.MaxSize)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}
