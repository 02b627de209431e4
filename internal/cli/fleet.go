package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
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
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/web"
	"github.com/ralph-pool/ralph/pool/fleet"
	"github.com/ralph-pool/ralph/pool/fleet/queueui"
	"github.com/ralph-pool/ralph/pool/journal"
)

const fleetLong = `Machines that run "ralph serve --database URL" with the same PostgreSQL database work the same projects together: one plans a
project, all work its issues, and what a dead one had is worked again by another. See docs/fleet.md.

The database's address is that of --database, of --database-file, or of ` + config.DatabaseVariable + `: postgres://USER@HOST/NAME. A password is
better in the file, in ~/.pgpass or in PGPASSWORD than in a flag, which every user of the host can see.`

// databaseOptions say which database a fleet shares.
type databaseOptions struct{ url, file string }

func (o *databaseOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.url, "database", "", "`address` of the fleet's database, postgres://USER@HOST/NAME; else "+config.DatabaseVariable)
	cmd.Flags().StringVar(&o.file, "database-file", "", "`file` that holds it")
}

// memberOptions say which project of a fleet a repository is.
type memberOptions struct {
	databaseOptions
	name string
}

func (o *memberOptions) flags(cmd *cobra.Command) {
	o.databaseOptions.flags(cmd)
	cmd.Flags().StringVar(&o.name, "fleet-name", "", "the project's `name` in the fleet (default: the repository's folder)")
}

// member opens the fleet's database for the repository; nil: none is named.
func member(ctx context.Context, a *compose.App, p *compose.Parts, o memberOptions) (*fleet.Database, string, error) {
	d, err := database(ctx, a, o.databaseOptions)
	if err == nil && d != nil {
		if err = migrated(d.Check(ctx)); err != nil {
			d.Close()
			d = nil
		}
	}
	return d, cmp.Or(o.name, filepath.Base(p.Top)), err
}

// fleetOptions are what `ralph serve` takes for a fleet.
type fleetOptions struct {
	databaseOptions
	roles   []string
	queueUI bool
}

func (o *fleetOptions) flags(cmd *cobra.Command) {
	o.databaseOptions.flags(cmd)
	cmd.Flags().StringSliceVar(&o.roles, "roles", roleNames(), "what this machine does in a fleet, such as planner,worker")
	cmd.Flags().BoolVar(&o.queueUI, "queue-ui", false, "serve River's own pages of a fleet's queue at "+web.QueuePath)
	_ = cmd.RegisterFlagCompletionFunc("roles", cobra.FixedCompletions(roleNames(), cobra.ShellCompDirectiveNoFileComp))
}

func roleNames() []string { return []string{"planner", "worker", "web"} }

// address is the database's address; empty: there is none.
func address(a *compose.App, o databaseOptions) (string, error) {
	if o.file == "" {
		return cmp.Or(o.url, a.Host.Getenv(config.DatabaseVariable)), nil
	}
	if o.url != "" {
		return "", exit.Usagef("--database and --database-file exclude each other")
	}
	path := a.Expand(a.Host.Dir, o.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return "", exit.Usagef("--database-file: %w", err)
	}
	a.WarnOfOpen("database-file", path)
	if strings.TrimSpace(string(text)) == "" {
		return "", exit.Usagef("--database-file: %s is empty; it has to hold postgres://USER@HOST/NAME", path)
	}
	return strings.TrimSpace(string(text)), nil
}

// database opens the fleet's database; nil: none is named.
func database(ctx context.Context, a *compose.App, o databaseOptions) (*fleet.Database, error) {
	where, err := address(a, o)
	if err != nil || where == "" {
		return nil, err
	}
	d, err := fleet.Open(ctx, where)
	if err != nil {
		return nil, &exit.Error{Status: exit.Usage, Err: err, Hint: "is it running, and reachable? try: psql with the same address"}
	}
	return d, nil
}

func newFleetCommand(a *compose.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "fleet", Short: "Prepare the database of a fleet, and look at its machines", Long: fleetLong,
		Example: "  ralph fleet migrate --database postgres://ralph@db.example.com/ralph\n  ralph fleet status", GroupID: compose.GroupSetUp,
	}
	var migrate, status databaseOptions
	m := &cobra.Command{
		Use: "migrate", Short: "Make or update the tables in the database", Args: exit.NoArgs,
		Long:    "Make or update the tables in the database: those of the queue, and ralph's own. It may be repeated, also while machines work.",
		Example: "  ralph fleet migrate --database-file ~/.config/ralph/database",
		RunE:    func(cmd *cobra.Command, _ []string) error { return migrateFleet(cmd.Context(), a, migrate) },
	}
	s := &cobra.Command{
		Use: "status", Short: "Show the machines, and the issues that they work or will work next", Args: exit.NoArgs,
		Long:    "Show the machines that live, and the rows of the queue: issues that are being worked, or will be next.",
		Example: "  ralph fleet status --database postgres://ralph@db.example.com/ralph",
		RunE:    func(cmd *cobra.Command, _ []string) error { return showFleet(cmd.Context(), a, status) },
	}
	migrate.flags(m)
	status.flags(s)
	cmd.AddCommand(m, s)
	return cmd
}

// fleetDatabase opens the database for a command that needs one.
func fleetDatabase(ctx context.Context, a *compose.App, o databaseOptions) (*fleet.Database, error) {
	d, err := database(ctx, a, o)
	if err == nil && d == nil {
		err = exit.Usagef("no database is named; give --database URL, --database-file FILE or %s", config.DatabaseVariable)
	}
	return d, err
}

func migrateFleet(ctx context.Context, a *compose.App, o databaseOptions) error {
	d, err := fleetDatabase(ctx, a, o)
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
	return err
}

func showFleet(ctx context.Context, a *compose.App, o databaseOptions) error {
	d, err := fleetDatabase(ctx, a, o)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := migrated(d.Check(ctx)); err != nil {
		return err
	}
	look, err := d.Look(ctx)
	if err != nil {
		return err
	}
	machines := [][]string{{"MACHINE", "PROJECTS"}}
	names := map[string]string{}
	for _, m := range look.Machines {
		var works []string
		for name, n := range m.Projects {
			works = append(works, name+" "+strconv.Itoa(n))
		}
		slices.Sort(works)
		names[m.ID] = m.Name
		machines = append(machines, []string{m.Name, cmp.Or(strings.Join(works, ", "), "-")})
	}
	if len(look.Machines) == 0 {
		a.UI.Printf("No machine is there.\n")
	} else {
		a.UI.Table(machines)
	}
	if len(look.Paused) > 0 {
		a.UI.Printf("Paused: %s.\n", screen.CleanLine(strings.Join(look.Paused, ", ")))
	}
	if len(look.Issues) == 0 {
		a.UI.Printf("No issue is being worked or waits for a machine.\n")
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

// migrated says what to do about a database that is not prepared.
func migrated(err error) error {
	if errors.Is(err, fleet.ErrNotMigrated) {
		return &exit.Error{Status: exit.Usage, Err: err, Hint: "prepare it with: ralph fleet migrate"}
	}
	return err
}

// joined is this process in a fleet. The nil joined is none.
type joined struct {
	*fleet.Fleet
	database *fleet.Database
	roles    map[string]bool
}

// join joins the fleet whose database is named; nil: none is.
func join(ctx context.Context, a *compose.App, o fleetOptions, log *slog.Logger) (*joined, error) {
	roles := map[string]bool{}
	for _, r := range o.roles {
		if !slices.Contains(roleNames(), r) {
			return nil, exit.Usagef("--roles: %q is not one of %s", r, strings.Join(roleNames(), ", "))
		}
		roles[r] = true
	}
	d, err := database(ctx, a, o.databaseOptions)
	switch {
	case err != nil:
		return nil, err
	case d == nil && len(roles) < len(roleNames()):
		return nil, exit.Usagef("--roles is for a fleet, which needs --database")
	case d == nil && o.queueUI:
		return nil, exit.Usagef("--queue-ui is for a fleet, which needs --database")
	case d == nil:
		return nil, nil //nolint:nilnil // nil is no fleet
	}
	f, err := fleet.Start(ctx, fleet.Config{Database: d, Plan: roles["planner"], Work: roles["worker"], TTL: a.Host.FleetLife, Log: log})
	if err != nil {
		d.Close()
		return nil, migrated(err)
	}
	return &joined{Fleet: f, database: d, roles: roles}, nil
}

// queue is the handler of the queue's pages, which work until ctx ends; nil: they are not wanted.
func (s *serving) queue(ctx context.Context) (http.Handler, error) {
	if !s.fleet.queueUI || s.metricsOnly {
		return nil, nil //nolint:nilnil // nil is no handler
	}
	return queueui.New(ctx, s.joined.database, web.QueuePath, s.log)
}

func (j *joined) leave() {
	if j != nil {
		j.Stop()
		j.database.Close()
	}
}

// take has the fleet work an open project; served: people look at it here.
func (j *joined) take(parts *service.Parts, name, repository string, c config.Config, served bool) {
	agents := []string{c.Agent}
	for _, other := range c.Fallback {
		agent, _, _ := strings.Cut(other, ":")
		if !slices.Contains(agents, agent) {
			agents = append(agents, agent)
		}
	}
	p := fleet.Project{
		Name: name, Repository: repository, Pool: parts.Pool, Claims: parts.Claims, Parallel: c.Parallel, Poll: c.Poll, Limit: c.FleetParallel,
		Account: "account " + cmp.Or(c.FleetAccount, strings.Join(agents, "+")), AccountLimit: c.FleetAccountParallel,
	}
	if shared, ok := parts.Store.(*fleet.Journal); ok {
		p.Journal, parts.Store, parts.Folder = shared, shared.History(), shared.Folder
	}
	parts.Work = func(ctx context.Context) error {
		err := j.Serve(ctx, p)
		if errors.Is(err, fleet.ErrOtherRepository) {
			err = fmt.Errorf("%w; give one of them another name in its list of projects, or, if it is one repository, both remotes the same host", err)
		}
		return err
	}
	parts.Wake, parts.Pause = func() { j.Wake(name) }, j.Pause(name)
	if served {
		parts.Elsewhere = func(ctx context.Context) ([]journal.Record, error) { return j.Elsewhere(ctx, name) }
	}
	parts.Stop = func(ctx context.Context, key string) (bool, error) {
		stopped, err := j.database.Stop(ctx, name, key)
		if err != nil {
			err = fmt.Errorf("tell the machine that works it: %w", err)
		}
		return stopped, err
	}
}
