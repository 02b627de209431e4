package sqlite

import (
	"context"
	"database/sql"
)

// prepare returns a statement, which SQLite parses only the first time. It must not be called in a transaction.
func (s *Store) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if known, ok := s.parsed.Load(query); ok {
		return known.(*sql.Stmt), nil
	}
	made, err := s.db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if known, ok := s.parsed.LoadOrStore(query, made); ok {
		return known.(*sql.Stmt), made.Close() //nolint:sqlclosecheck // only one of the two is kept
	}
	return made, nil
}

// ask is QueryContext of a prepared statement.
func (s *Store) ask(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	asked, err := s.prepare(ctx, query) //nolint:sqlclosecheck // it lives as long as the store
	if err != nil {
		return nil, err
	}
	return asked.QueryContext(ctx, args...)
}
