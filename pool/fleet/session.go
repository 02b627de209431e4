package fleet

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Sessions are the browsers that have logged in to any machine.
type Sessions struct{ d *Database }

// Sessions are those of all machines that share the database.
func (d *Database) Sessions() Sessions { return Sessions{d} }

// maxSessions is how many there are at most.
const maxSessions = 10_000

// Begin adds a session that ends by itself after a while. Where there are too many, the oldest end.
func (s Sessions) Begin(ctx context.Context, id []byte, life time.Duration) error {
	return s.d.batch(ctx, func(b *pgx.Batch) {
		b.Queue("DELETE FROM ralph_session WHERE expires_at < now() OR id IN (SELECT id FROM ralph_session ORDER BY expires_at DESC OFFSET $1)", maxSessions-1)
		b.Queue("INSERT INTO ralph_session (id, expires_at) VALUES ($1, now() + make_interval(secs => $2))", id, life.Seconds())
	})
}

// On reports whether a session has begun and not ended.
func (s Sessions) On(ctx context.Context, id []byte) (bool, error) {
	found, err := query(ctx, s.d, pgx.RowTo[bool], "SELECT EXISTS (SELECT FROM ralph_session WHERE id = $1 AND expires_at > now())", id)
	return err == nil && found[0], err
}

// End ends a session on all machines.
func (s Sessions) End(ctx context.Context, id []byte) error {
	_, err := s.d.exec(ctx, "DELETE FROM ralph_session WHERE id = $1", id)
	return err
}
