package pooler

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ralph-pool/ralph/pool/fleet/fleettest"
)

// A pooler provides what every connection needs only in session mode.
func TestCheck(t *testing.T) {
	t.Parallel()
	server, end, err := fleettest.New()
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	direct := server.Database(t)
	for mode, want := range map[string]error{"": nil, "session": nil, "transaction": ErrShared, "statement": ErrShared} {
		address := direct
		if mode != "" {
			address = server.Through(server.Pooler(t, mode), direct)
		}
		pool, err := pgxpool.New(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // also when the pooler already has server connections
			if err := Check(t.Context(), pool); !errors.Is(err, want) {
				t.Errorf("%q: %v, want %v", mode, err, want)
			}
		}
		pool.Close()
	}
}
