package fleet

import (
	"context"
	"slices"
)

// Pause keeps all machines from starting runs of a project. Runs in progress continue.
type Pause struct {
	f       *Fleet
	project string
}

// Pause returns the pause of a project.
func (f *Fleet) Pause(project string) Pause { return Pause{f, project} }

// Set begins or ends the pause on all machines.
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

// IsPaused reports whether the project was paused when this process last read the database.
func (p Pause) IsPaused() bool {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	return slices.Contains(p.f.paused, p.project)
}

// readPauses reads the paused projects.
func (f *Fleet) readPauses(ctx context.Context) error {
	f.reading.Lock() // otherwise an older answer may replace a newer one
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
