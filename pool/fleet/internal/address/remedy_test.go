package address

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// The advice says what is missing if the tables are in another schema, or if the role is not their owner.
func TestRemedyForSchemasAndRights(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{"3F000": "CREATE SCHEMA", "42501": "GRANT"} {
		if got := Remedy(fmt.Errorf("migrate: %w", &pgconn.PgError{Code: code})); !strings.Contains(got, want) {
			t.Errorf("%s: %q", code, got)
		}
	}
}

// A server without TLS is only mentioned if that is the reason: by default the driver continues without TLS.
func TestHideLeavesOutTheFirstTry(t *testing.T) {
	t.Parallel()
	const refused = "127.0.0.1:5432 (127.0.0.1): tls error: server refused TLS connection"
	p := new(Passwords)
	for text, want := range map[string]string{
		"failed to connect:\n\t" + refused + "\n\t127.0.0.1:5432 (127.0.0.1): server error: no such role": "failed to connect: 127.0.0.1:5432 (127.0.0.1): server error: no such role",
		"failed to connect:\n\t" + refused: "failed to connect: " + refused,
		"failed to connect: " + refused:    "failed to connect: " + refused,
	} {
		if got := p.Hide(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
