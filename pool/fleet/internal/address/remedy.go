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
		return "the address requires TLS, which the server does not offer: enable it there (ssl = on), " +
			"or, on a network that nobody else can read, set sslmode=disable in the address"
	default:
		return ""
	}
	return map[string]string{
		"25006": "it is read-only, such as a standby; name the primary, or all servers and target_session_attrs=read-write",
		"28000": "it has no such role, or its pg_hba.conf does not let that role connect from this machine",
		"28P01": "the password is wrong; it comes from the address, PGPASSWORD or ~/.pgpass",
		"3D000": "create it with: createdb --owner USER NAME",
		"3F000": "create the schema that search_path names: CREATE SCHEMA NAME AUTHORIZATION USER",
		"42501": "use the role that owns the database and ralph's tables (createdb --owner USER NAME), " +
			"or have the owner GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES and USAGE ON ALL SEQUENCES of the schema",
		"53300": "it accepts no more connections; each machine needs 8 (max_connections, and CONNECTION LIMIT of role and database)",
		"57014": "it cancelled the query: a person did, or its statement_timeout is too short; try again",
		"57P03": "it accepts no connections now: it is starting, stopping or recovering; try again in a moment",
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
