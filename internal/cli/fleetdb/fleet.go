// Package fleetdb finds, prepares and opens the database that the machines of a fleet share: for `ralph fleet`, and for the flags
// with which other commands include all machines.
package fleetdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/fleet"
	"github.com/ralph-pool/ralph/worktree/git"
)

const fleetLong = `Machines that run "ralph serve --database URL" with the same PostgreSQL database work the same projects together: one plans a
project, all work its issues, and another takes over the issues of one that has died. See docs/fleet.md.

The database's address is that of --database, of --database-file, or of ` + config.DatabaseVariable + `: postgres://USER@HOST/NAME. A password is
better in the file, in ~/.pgpass or in PGPASSWORD than in a flag, which every user of the host can see.`

// Options name the database of a fleet.
type Options struct{ url, file string }

// Flags adds the flags that name the database.
func (o *Options) Flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.url, "database", "", "`address` of the fleet's database, "+
		"postgres://USER@HOST/NAME; else "+config.DatabaseVariable)
	cmd.Flags().StringVar(&o.file, "database-file", "", "`file` with the address")
}

// Member names the database of a fleet, and the repository's project in it.
type Member struct {
	Options
	name string
}

// Flags adds the flags that name database and project.
func (o *Member) Flags(cmd *cobra.Command) {
	o.Options.Flags(cmd)
	cmd.Flags().StringVar(&o.name, "fleet-name", "", "the project's `name` in the fleet (default: the repository's folder)")
}

// OpenProject opens the fleet's database for the repository, and returns the project's name in it. The database is nil if none is
// named.
func OpenProject(ctx context.Context, a *compose.App, p *compose.Parts, o Member) (*fleet.Database, string, error) {
	d, err := Open(ctx, a, o.Options)
	if err == nil && d != nil {
		if err = o.Hint(d.Check(ctx)); err != nil {
			d.Close()
			d = nil
		}
	}
	return d, cmp.Or(o.name, filepath.Base(p.Top)), err
}

// address returns the database's address, and the setting that names it; an empty address: none does.
func address(a *compose.App, o Options) (where, from string, err error) {
	switch {
	case o.file == "" && o.url == "":
		return a.Host.Getenv(config.DatabaseVariable), config.DatabaseVariable, nil
	case o.file == "":
		return o.url, "--database", nil
	case o.url != "":
		return "", "", exit.Usagef("--database and --database-file exclude each other")
	}
	path := a.Expand(a.Host.Dir, o.file)
	if where, err = a.ReadSecretFile("database-file", path); err != nil {
		return "", "", exit.Usagef("--database-file: %w", err)
	}
	if where == "" {
		return "", "", exit.Usagef("--database-file: %s is empty; write postgres://USER@HOST/NAME into it", path)
	}
	return where, "--database-file " + path, nil
}

// Open opens the fleet's database. It returns nil if none is named.
func Open(ctx context.Context, a *compose.App, o Options) (*fleet.Database, error) {
	where, from, err := address(a, o)
	if err != nil || where == "" {
		return nil, err
	}
	d, err := fleet.OpenFrom(ctx, func() (string, error) {
		where, _, err := address(a, o)
		return where, err
	})
	if errors.Is(err, fleet.ErrAddress) {
		return nil, exit.Usagef("%s: %w", from, err)
	}
	if err == nil {
		return d, nil
	}
	failed := &exit.Error{Status: exit.Usage, Err: err, Hint: fleet.Remedy(err)}
	if failed.Hint == "" { // it was not reached
		failed.Status, failed.Hint = exit.Parked, "is it running, and reachable? try: psql with the same address"
	}
	return nil, failed
}

// NewCommand returns `ralph fleet`.
func NewCommand(a *compose.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "fleet",
		Short:   "Prepare the database of a fleet, and look at its machines",
		Long:    fleetLong,
		Example: "  ralph fleet migrate --database postgres://ralph@db.example.com/ralph\n  ralph fleet status",
		GroupID: compose.GroupSetUp,
	}
	var migrate, status Options
	m := &cobra.Command{
		Use: "migrate", Short: "Make or update the tables in the database", Args: exit.NoArgs,
		Long: "Make or update the tables in the database: those of the queue, " +
			"and ralph's own. It may be repeated, also while machines work.",
		Example: "  ralph fleet migrate --database-file ~/.config/ralph/database",
		RunE:    func(cmd *cobra.Command, _ []string) error { return migrateFleet(cmd.Context(), a, migrate) },
	}
	s := &cobra.Command{
		Use: "status", Short: "Show the machines, and the issues that they work or will work next", Args: exit.NoArgs,
		Long:    "Show the machines that live, and the rows of the queue: issues that are being worked, or will be next.",
		Example: "  ralph fleet status --database postgres://ralph@db.example.com/ralph",
		RunE:    func(cmd *cobra.Command, _ []string) error { return showFleet(cmd.Context(), a, status) },
	}
	migrate.Flags(m)
	status.Flags(s)
	cmd.AddCommand(m, s)
	return cmd
}

// mustOpen opens the database for a command that needs one.
func mustOpen(ctx context.Context, a *compose.App, o Options) (*fleet.Database, error) {
	d, err := Open(ctx, a, o)
	if err == nil && d == nil {
		err = exit.Usagef("no database is named; give --database URL, --database-file FILE or %s", config.DatabaseVariable)
	}
	return d, err
}

func migrateFleet(ctx context.Context, a *compose.App, o Options) error {
	d, err := mustOpen(ctx, a, o)
	if err != nil {
		return err
	}
	defer d.Close()
	done, err := d.Migrate(ctx)
	for _, line := range done {
		a.UI.Printf("%s\n", screen.CleanLine(line))
	}
	if err == nil && len(done) == 0 {
		a.UI.Printf("The database is up to date.\n")
	}
	return o.Hint(err)
}

// silent is the age of its last heartbeat at which a machine is listed as silent: it has missed two.
const silent = 16 * time.Second

func showFleet(ctx context.Context, a *compose.App, o Options) error {
	d, err := mustOpen(ctx, a, o)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := o.Hint(d.Check(ctx)); err != nil {
		return err
	}
	look, err := d.Snapshot(ctx)
	if err != nil {
		return o.Hint(err)
	}
	machines := [][]string{{"MACHINE", "PID", "ROLES", "SINCE", "PROJECTS"}}
	names := map[string]string{}
	for _, m := range look.Machines {
		var works []string
		for name, n := range m.Projects {
			if n > 0 {
				name += " " + strconv.Itoa(n)
			}
			works = append(works, name)
		}
		slices.Sort(works)
		if m.Silent > silent {
			m.Name += fmt.Sprintf(" (silent for %s)", m.Silent.Round(time.Second))
		}
		names[m.ID] = fmt.Sprintf("%s (pid %d)", m.Name, m.PID)
		machines = append(machines, []string{
			m.Name, strconv.Itoa(m.PID), strings.Join(m.Roles, ","), screen.Ago(m.Since, time.Now()),
			cmp.Or(strings.Join(works, ", "), "-"),
		})
	}
	if len(look.Machines) == 0 {
		a.UI.Printf("No machines.\n")
	} else {
		a.UI.Table(machines)
	}
	if role := missingRole(look.Machines); role != "" && len(look.Machines) > 0 {
		a.UI.Printf("No machine has the role %s, so no new issue begins.\n", role)
	}
	if len(look.Paused) > 0 {
		a.UI.Printf("Paused: %s.\n", screen.CleanLine(strings.Join(look.Paused, ", ")))
	}
	if len(look.Issues) == 0 {
		a.UI.Printf("No issue is being worked or waiting for a machine.\n")
		return nil
	}
	rows := [][]string{{"PROJECT", "ISSUE", "STATE", "MACHINE"}}
	for _, i := range look.Issues {
		state, where := "waits", ""
		switch wait := time.Until(i.Next).Round(time.Second); {
		case i.State == "running":
			state, where = "running", cmp.Or(names[i.Machine], "gone")
		case wait > 0:
			state = "waits " + wait.String()
		}
		rows = append(rows, []string{i.Project, i.Key, state, cmp.Or(where, "-")})
	}
	a.UI.Table(rows)
	return nil
}

// missingRole returns a role that no machine has and without which no issue begins, or "".
func missingRole(machines []fleet.Machine) string {
	for _, role := range []string{"planner", "worker"} {
		if !slices.ContainsFunc(machines, func(m fleet.Machine) bool { return slices.Contains(m.Roles, role) }) {
			return role
		}
	}
	return ""
}

// prepare returns the command that prepares the database, without a password.
func (o Options) prepare() string {
	switch {
	case o.file != "":
		return "ralph fleet migrate --database-file " + git.Quote(o.file)
	case o.url == "":
		return "ralph fleet migrate"
	case mayHavePassword(o.url):
		return "ralph fleet migrate --database ADDRESS, with the address that you gave"
	}
	return "ralph fleet migrate --database " + git.Quote(o.url)
}

// mayHavePassword reports whether an address contains a password, or might.
func mayHavePassword(address string) bool {
	plain, err := url.PathUnescape(address)
	if err != nil || strings.Contains(strings.ToLower(plain), "password") {
		return true
	}
	if !strings.Contains(address, "://") {
		return false
	}
	u, err := url.Parse(address)
	if err != nil || strings.Contains(u.Path, "@") {
		return true
	}
	_, has := u.User.Password()
	return has
}

// Hint adds a hint to an error of the database, if there is one.
func (o Options) Hint(err error) error {
	hint := fleet.Remedy(err)
	switch {
	case errors.Is(err, fleet.ErrNewer):
		hint = "install the newer ralph; `ralph version` shows this version"
	case errors.Is(err, fleet.ErrNotMigrated):
		hint = "prepare it with: " + o.prepare()
	case errors.Is(err, fleet.ErrIncomplete):
		hint = "restore the database from a backup, or name an empty one"
	}
	if hint != "" {
		return &exit.Error{Status: exit.Usage, Err: err, Hint: hint}
	}
	return err
}
