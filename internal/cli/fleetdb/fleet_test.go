package fleetdb

import (
	"errors"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// The command that prepares a database contains the address, unless that may contain a password.
func TestPrepareNamesTheAddress(t *testing.T) {
	t.Parallel()
	const hidden = "ralph fleet migrate --database ADDRESS, with the address that you gave"
	for o, want := range map[Options]string{
		{}:                                       "ralph fleet migrate",
		{file: "a"}:                              "ralph fleet migrate --database-file a",
		{url: "postgres://u@h/db"}:               "ralph fleet migrate --database postgres://u@h/db",
		{url: "postgres://u@h:5432/db"}:          "ralph fleet migrate --database postgres://u@h:5432/db",
		{url: "postgres://u@[::1]:5432/db"}:      "ralph fleet migrate --database 'postgres://u@[::1]:5432/db'",
		{url: "host=h port=5432 dbname=db"}:      "ralph fleet migrate --database 'host=h port=5432 dbname=db'",
		{url: "postgres://u:p@h/db"}:             hidden,
		{url: "postgres://u:p@h:5432/db"}:        hidden,
		{url: "postgres://u@h/db?Password=p"}:    hidden,
		{url: "postgres://u@h/db?p%61ssword=p"}:  hidden,
		{url: "postgres://u@h/db?sslpassword=p"}: hidden,
		{url: "host=h password=p"}:               hidden,
		{url: "postgres://u:p:q@h:5432/db"}:      hidden,
		{url: "postgres://u:p/q@h:5432/db"}:      hidden,
	} {
		if got := o.prepare(); got != want {
			t.Errorf("%+v: %q, want %q", o, got, want)
		}
	}
}

// A database that cannot be reached is unavailable, and no mistake of the command line.
func TestStatusOfADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), &compose.App{}, Options{url: "host=" + t.TempDir() + " user=u"})
	failed, ok := errors.AsType[*exit.Error](err)
	if !ok || failed.Status != exit.Parked || failed.Hint == "" {
		t.Errorf("%+v", err)
	}
}
