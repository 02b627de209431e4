package fleet

import (
	"context"
	"slices"
)

// Pause keeps all machines from starting runs of a project until it ends. Runs that are on go on.
type Pause struct {
	f       *Fleet
	project string
}

// Pause is the pause of a project.
func (f *Fleet) Pause(project string) Pause { return Pause{f, project} }

// Set begins or ends the pause, on all machines at once.
func (p Pause) Set(paused bool) error {
	sql := "DELETE FROM ralph_pause WHERE project = $1"
	if paused {
		sql = "INSERT INTO ralph_pause (project) VALUES ($1) ON CONFLICT DO NOTHING"
	}
	if _, err := p.f.db.exec(context.Background(), sql, p.project); err != nil {
		return err
	}
	return p.f.readPauses(context.Background())
}

// On reports whether it was on when this process last read that from the database.
func (p Pause) On() bool {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	return slices.Contains(p.f.paused, p.project)
}

// readPauses reads which projects are paused.
func (f *Fleet) readPauses(ctx context.Context) error {
	f.reading.Lock() // else an older answer may replace a newer one
	defer f.reading.Unlock()
	list, err := f.db.paused(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paused = list
	return nil
}
