package fleet

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Pause keeps all machines from beginning anything of a project, until it is taken back. What is on goes on.
type Pause struct {
	f       *Fleet
	project string
}

// Pause is the pause of a project.
func (f *Fleet) Pause(project string) Pause { return Pause{f, project} }

// Set begins or ends the pause. The other machines obey at once.
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

// On reports whether it was on when this process asked the database last.
func (p Pause) On() bool {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	return p.f.paused[p.project]
}

// readPauses asks the database which projects are paused.
func (f *Fleet) readPauses(ctx context.Context) error {
	f.asking.Lock() // else an answer may be older than the one before
	defer f.asking.Unlock()
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	list, err := f.db.paused(ctx)
	if err != nil {
		return err
	}
	paused := map[string]bool{}
	for _, name := range list {
		paused[name] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paused = paused
	return nil
}

// paused lists the projects that are paused.
func (d *Database) paused(ctx context.Context) ([]string, error) {
	rows, err := d.pool.Query(ctx, "SELECT project FROM ralph_pause ORDER BY 1")
	if err != nil {
		return nil, d.hide(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return list, d.hide(err)
}
