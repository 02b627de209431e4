package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/fleetdb"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/web"
	"github.com/ralph-pool/ralph/pool/fleet"
	"github.com/ralph-pool/ralph/pool/fleet/queueui"
	"github.com/ralph-pool/ralph/pool/journal"
)

// fleetOptions are the flags of `ralph serve` for a fleet.
type fleetOptions struct {
	fleetdb.Options
	roles   []string
	queueUI bool
}

func (o *fleetOptions) flags(cmd *cobra.Command) {
	o.Options.Flags(cmd)
	cmd.Flags().StringSliceVar(&o.roles, "roles", roleNames(), "what this machine does in a fleet, such as planner,worker")
	cmd.Flags().BoolVar(&o.queueUI, "queue-ui", false, "serve River's own pages of a fleet's queue at "+web.QueuePath)
	_ = cmd.RegisterFlagCompletionFunc("roles", cobra.FixedCompletions(roleNames(), cobra.ShellCompDirectiveNoFileComp))
}

func roleNames() []string { return []string{"planner", "worker", "web"} }

// joined is this process as a member of a fleet. nil means no fleet.
type joined struct {
	*fleet.Fleet
	database *fleet.Database
	roles    map[string]bool
}

// join joins the fleet whose database is named, or returns nil if none is.
func join(ctx context.Context, a *compose.App, o fleetOptions, log *slog.Logger) (*joined, error) {
	roles := map[string]bool{}
	for _, r := range o.roles {
		if !slices.Contains(roleNames(), r) {
			return nil, exit.Usagef("--roles: %q is not one of %s", r, strings.Join(roleNames(), ", "))
		}
		roles[r] = true
	}
	d, err := fleetdb.Open(ctx, a, o.Options)
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
	named := slices.DeleteFunc(roleNames(), func(name string) bool { return !roles[name] })
	f, err := fleet.Start(ctx, fleet.Config{
		Database: d,
		Roles:    named,
		Plan:     roles["planner"],
		Work:     roles["worker"],
		TTL:      a.Host.FleetLife,
		Log:      log,
	})
	if err != nil {
		d.Close()
		return nil, o.Hint(err)
	}
	return &joined{Fleet: f, database: d, roles: roles}, nil
}

// queue returns the handler of River's pages, which work until ctx ends, or nil if they are off.
func (s *serving) queue(ctx context.Context) (http.Handler, error) {
	if !s.fleet.queueUI || s.metricsOnly {
		return nil, nil //nolint:nilnil // nil is no handler
	}
	return queueui.New(ctx, s.joined.database, web.QueuePath, slog.New(s.joined.Quiet(s.log.Handler())))
}

func (j *joined) leave() {
	if j != nil {
		j.Stop()
		j.database.Close()
	}
}

// take lets the fleet work an open project. served means that this machine shows it to people.
func (j *joined) take(parts *service.Parts, name, repository string, c config.Config, parallel int, served bool) {
	agents := []string{c.Agent}
	for _, other := range c.Fallback {
		agent, _, _ := strings.Cut(other, ":")
		if !slices.Contains(agents, agent) {
			agents = append(agents, agent)
		}
	}
	p := fleet.Project{
		Name:         name,
		Repository:   repository,
		Pool:         parts.Pool,
		Claims:       parts.Claims,
		Parallel:     parallel,
		Poll:         c.Poll,
		Limit:        c.FleetParallel,
		Account:      "account " + cmp.Or(c.FleetAccount, strings.Join(agents, "+")),
		AccountLimit: c.FleetAccountParallel,
	}
	if shared, ok := parts.Store.(*fleet.Journal); ok {
		p.Journal, parts.Store, parts.Folder = shared, shared.History(), shared.Folder
	}
	parts.Work = func(ctx context.Context) error {
		err := j.Serve(ctx, p)
		if errors.Is(err, fleet.ErrOtherRepository) {
			err = fmt.Errorf("%w; give one of them another name in its list of projects, "+
				"or, if it is one repository, both remotes the same host", err)
		}
		return err
	}
	parts.Held = func() error { return j.PauseReason(name) }
	parts.Wake, parts.Pause = func() { j.Wake(name) }, j.Pause(name)
	if served {
		parts.Elsewhere = func(ctx context.Context) ([]journal.Record, error) { return j.RunsElsewhere(ctx, name) }
	}
	parts.Stop = func(ctx context.Context, key, run string) (bool, error) {
		stopped, err := j.database.Stop(ctx, name, key, run)
		if err != nil {
			err = fmt.Errorf("tell the machine that works it: %w", err)
		}
		return stopped, err
	}
}
