package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A session that has begun on any machine is valid on all until it is ended or expires. Their number is limited.
func TestSessions(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	s := d.Sessions()
	is := func(id string, want bool) {
		t.Helper()
		if on, err := s.IsActive(t.Context(), []byte(id)); err != nil || on != want {
			t.Errorf("%s is on: %t, %v", id, on, err)
		}
	}
	begin := func(id string, life time.Duration) {
		t.Helper()
		if err := s.Begin(t.Context(), []byte(id), life); err != nil {
			t.Error(err)
		}
	}
	begin("a", time.Minute)
	begin("b", time.Hour)
	begin("over", -time.Second)
	is("a", true)
	is("over", false)
	is("unknown", false)
	if err := s.End(t.Context(), []byte("a")); err != nil {
		t.Error(err)
	}
	is("a", false)
	is("b", true)
	if _, err := d.exec(t.Context(), fmt.Sprintf(`INSERT INTO ralph_session (id, expires_at)
		SELECT decode(to_hex(n + 4096), 'hex'), now() + interval '2 hours' FROM generate_series(1, %d) AS n`, maxSessions-1)); err != nil {
		t.Fatal(err)
	}
	begin("last", time.Hour)
	is("b", false)
	is("last", true)
	left, err := query(t.Context(), d, pgx.RowTo[int], "SELECT count(*) FROM ralph_session")
	if err != nil || left[0] != maxSessions {
		t.Errorf("%d are left, %v", left, err)
	}
}
