package address

import (
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Remedy says what a person can do about an error of PostgreSQL; "" if the error itself has to say it.
func Remedy(err error) string {
	e, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok:
	case err != nil && strings.HasSuffix(strings.TrimSpace(err.Error()), noTLS): // otherwise the driver continued without TLS
		return "its address asks for TLS, which the server does not have: turn it on there (ssl = on), " +
			"or set sslmode=disable in the address where nobody else reads the network"
	default:
		return ""
	}
	return map[string]string{
		"25006": "it takes no writes, such as a standby; name the primary, or all servers and target_session_attrs=read-write",
		"28000": "it has no such role, or its pg_hba.conf does not let it in from this machine",
		"28P01": "the password is not that of the role; it is the address's, or that of PGPASSWORD or ~/.pgpass",
		"3D000": "make it with: createdb --owner USER NAME",
		"3F000": "make the schema that search_path names: CREATE SCHEMA NAME AUTHORIZATION USER",
		"42501": "use the role that owns the database and ralph's tables (createdb --owner USER NAME), " +
			"or have the owner GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES and USAGE ON ALL SEQUENCES of the schema",
		"53300": "it gives no more connections; each machine needs 8 (max_connections, and CONNECTION LIMIT of role and database)",
		"57014": "it has cancelled what ralph asked, for its statement_timeout or a person; try again",
		"57P03": "it takes no connections yet: it starts, stops or recovers; try again in a moment",
	}[e.Code]
}

// Refuses reports whether the server refuses the request until a person changes something. A server that is starting, is
// stopping or has cancelled a statement does not count.
func Refuses(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && Remedy(err) != "" && !strings.HasPrefix(e.Code, "57")
}

// IsAway reports whether the same call may succeed later: the database was not reached, or accepts no logins or no writes
// (25006).
func IsAway(err error) bool {
	answer, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || errors.As(err, new(*pgconn.ConnectError)) || answer.Code == "25006" {
		return true
	}
	class := answer.Code[:min(2, len(answer.Code))]
	return slices.Contains([]string{"08", "53", "57"}, class)
}
