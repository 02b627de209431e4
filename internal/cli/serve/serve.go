// Package serve has the commands of the service: `ralph serve`, alone or in a fleet, and `ralph projects`, which edits its
// list of projects. It also has `ralph top`, which watches the runs of a service or of a repository on this host.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/progress"
	"github.com/ralph-pool/ralph/internal/cli/scaffold"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/web"
	"github.com/ralph-pool/ralph/internal/web/dashboard"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree/git"
)

const serveLong = `Work the backlogs of one or more projects until the process is stopped, and serve a dashboard, an HTTP API
and metrics.

CONFIG is a YAML file with a list of projects: each has a repository, optionally a name, and configuration keys, which
override those in the repository's and your own file. Without CONFIG the current repository is the only project.

SIGINT and SIGTERM end the service when its current runs have ended; a second signal kills them. SIGHUP, or a change of
CONFIG or of a project's files, reloads the configuration. A bad configuration is refused, and the last good one stays.`

const serveExample = `  ralph serve
  ralph serve ~/.config/ralph/serve.yaml
  ralph serve --listen unix:/run/ralph/api.sock serve.yaml`

// NewCommand returns `ralph serve`.
func NewCommand(a *compose.App) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use: "serve [CONFIG]", Short: "Work backlogs as a service, with a dashboard", Long: serveLong, Example: serveExample,
		Annotations: compose.Marks(compose.Serves),
		GroupID:     compose.GroupWork, Args: exit.AtMostOneName("CONFIG"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s := &serving{App: a, cmd: cmd, serveOptions: o, views: map[string]*progress.View{}, alarms: map[string]alarm{}}
			if len(args) > 0 {
				s.file = a.Expand(a.Host.Dir, args[0])
			}
			return s.run()
		},
	}
	cmd.Flags().StringVar(&o.listen, "listen", defaultListen, "`address` of the API: HOST:PORT, unix:PATH, "+
		"systemd (the socket of its unit), or none")
	cmd.Flags().StringVar(&o.tokenFile, "listen-token-file", "", "`file` with the token that clients must send; else "+
		config.ListenTokenVariable)
	cmd.Flags().StringArrayVar(&o.hosts, "listen-host", nil, "another host `name` that clients may use, such as that of a proxy")
	o.fleet.flags(cmd)
	a.Bind(cmd, keys.ForService)
	return cmd
}

// defaultListen is the default address of the API.
const defaultListen = "127.0.0.1:7420"

type serveOptions struct {
	listen, tokenFile string
	hosts             []string
	fleet             fleetOptions
}

// serving is one run of `ralph serve`.
type serving struct {
	*compose.App
	serveOptions
	cmd     *cobra.Command
	file    string // absolute; empty: the current repository is the only project
	log     *slog.Logger
	service *service.Service
	metrics *web.Metrics
	live    *dashboard.Live
	joined  *joined // nil: not in a fleet
	state   string  // folder of the state of all repositories

	metricsOnly bool // without the role web: no pages and no API

	names []string // of the listed projects
	total int      // limit of issues of all projects at a time; 0: no limit

	closing       sync.WaitGroup
	systemd       compose.Host // with the variables for this process only
	webhookSecret string       // for projects without a file of their own; empty: none

	mu     sync.Mutex
	views  map[string]*progress.View // guarded by mu; by project
	alarms map[string]alarm          // guarded by mu; by project that cannot be opened, or listAlarm
}

// orProjects adds the user's file of projects to the hint of an error outside of a repository.
func (s *serving) orProjects(err error) error {
	file := config.ServiceFile(s.Host.Env)
	if e, ok := errors.AsType[*exit.Error](err); ok && e.Hint != "" {
		if _, missing := os.Stat(file); missing == nil {
			e.Hint += "; or serve your projects: ralph serve " + file
		}
	}
	return err
}

func (s *serving) run() error {
	list, total, err := s.configure()
	if err != nil {
		return err
	}
	token, err := listenToken(s.App, s.tokenFile)
	if err != nil {
		return err
	}
	for _, host := range s.hosts {
		if host == "" || strings.ContainsAny(host, "/ ") || strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return exit.Usagef("--listen-host: %q is not the name of a host; give it without https://, port and brackets", host)
		}
	}
	if s.joined, err = join(s.cmd.Context(), s.App, s.fleet, s.log); err != nil {
		return err
	}
	defer s.joined.leave()
	if s.joined == nil { // a fleet's database gives each issue to one machine
		release, err := s.alone()
		if err != nil {
			return err
		}
		defer release()
	}
	if s.metricsOnly = s.joined != nil && !s.joined.roles["web"]; s.metricsOnly && !s.cmd.Flags().Changed("listen") {
		s.listen = "none"
	}
	s.metrics, s.live = web.NewMetrics(), dashboard.NewLive()
	s.service = service.New(service.Config{Log: s.log, Observe: s.observe})
	s.webhookSecret = s.Host.Getenv(config.WebhookSecretVariable)
	s.systemd = s.Host
	systemd := newSystemdSocket(s.Host)
	s.Host.Env = withoutService(s.Host.Env)
	var hangup <-chan struct{}
	if s.Host.Hangup != nil {
		hangup = s.Host.Hangup()
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(s.cmd.Context()))
	defer cancel(nil)
	var beside sync.WaitGroup
	if err := s.serve(ctx, &beside, token); err != nil {
		return err
	}
	s.apply(list, total)
	beside.Go(func() { systemd.beat(ctx, s.service.Alive) })
	systemd.send("READY=1")
	s.watch(hangup)
	systemd.send("STOPPING=1")
	if n := s.running(); n > 0 {
		s.UI.Note("draining: waiting for %s to end; a second signal kills them", screen.Plural(n, "run"))
	}
	stop := context.AfterFunc(s.Hard, s.service.Kill)
	defer stop()
	s.service.Drain()
	s.service.Wait()
	s.calmAll()
	s.closing.Wait()
	cancel(nil)
	beside.Wait()
	if s.Hard.Err() != nil {
		return context.Cause(s.Hard)
	}
	return nil
}

// listenToken returns the token that clients of the API must send, or "" for none.
func listenToken(a *compose.App, file string) (string, error) {
	token, from := strings.TrimSpace(a.Host.Getenv(config.ListenTokenVariable)), config.ListenTokenVariable
	if file != "" {
		path := a.Expand(a.Host.Dir, file)
		var err error
		token, err = a.ReadSecretFile("listen-token-file", path)
		if errors.Is(err, fs.ErrNotExist) {
			return "", exit.Usagef("--listen-token-file: %w; make one with: (umask 077; openssl rand -hex 32 >%s)", err, git.Quote(path))
		}
		if err != nil {
			return "", exit.Usagef("--listen-token-file: %w", err)
		}
		from = "--listen-token-file: " + path
	}
	if len(token) < compose.MinToken && (file != "" || token != "") {
		return "", exit.Usagef("%s has fewer than %d characters; make one with: openssl rand -hex 32", from, compose.MinToken)
	}
	return token, nil
}

// serve starts to answer requests, until ctx ends.
func (s *serving) serve(ctx context.Context, beside *sync.WaitGroup, token string) error {
	if s.listen == "none" {
		return nil
	}
	listen := web.Listen
	if s.listen == "systemd" {
		listen = func(context.Context, string, string) (net.Listener, error) { return handedOver(s.systemd, token) }
	}
	listener, err := listen(ctx, s.listen, token)
	if errors.Is(err, web.ErrNeedsToken) {
		return exit.Usagef("--listen %w; give --listen-token-file FILE or %s, or use 127.0.0.1 or unix:PATH",
			err, config.ListenTokenVariable)
	}
	if err != nil {
		return &exit.Error{
			Status: exit.Usage,
			Err:    fmt.Errorf("--listen: %w", err),
			Hint:   "choose another address with --listen HOST:PORT, or --listen none",
		}
	}
	queue, err := s.queue(ctx)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	var hooks http.Handler
	if !s.metricsOnly {
		hooks = s.hooks()
	}
	var sessions web.Sessions
	if s.joined != nil {
		sessions = s.joined.database.Sessions()
	}
	beside.Go(func() {
		err := web.Serve(ctx, listener, web.Config{
			Service:     s.service,
			Token:       token,
			Sessions:    sessions,
			Hosts:       s.hosts,
			Log:         s.log,
			Metrics:     s.metrics,
			Live:        s.live,
			Version:     s.App.Build().Version,
			Hooks:       hooks,
			Queue:       queue,
			MetricsOnly: s.metricsOnly,
		})
		if ctx.Err() == nil {
			s.log.Error("the API has ended", "error", err)
		}
	})
	s.UI.Note("listening on %s", s.address(listener))
	return nil
}

// withoutService removes the variables that are for the service only, and not for its child processes.
func withoutService(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{
			"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES",
		}, name) || slices.Contains(config.SecretVariables(), name)
	})
}

func (s *serving) running() (n int) {
	for _, p := range s.service.Projects() {
		n += len(p.Running)
	}
	return n
}

// projects reads the list of projects.
func (s *serving) projects() (list []service.Project, total int, err error) {
	if s.file == "" {
		top, err := s.Top(s.cmd.Context())
		if err != nil {
			return nil, 0, err
		}
		return []service.Project{{Name: filepath.Base(top), Load: s.loader(config.Project{Name: filepath.Base(top), Repo: top}, 0)}}, 0, nil
	}
	file, err := config.ReadService(s.file, s.Host.Env, s.Choices())
	if err != nil {
		return nil, 0, err
	}
	for _, p := range file.Projects {
		list = append(list, service.Project{Name: p.Name, Load: s.loader(p, file.Parallel)})
	}
	return list, file.Parallel, nil
}

// loader returns the function that reads a project's configuration. total limits the issues of all projects at a time; 0: no
// limit.
func (s *serving) loader(p config.Project, total int) func(context.Context) (service.Setup, error) {
	return func(ctx context.Context) (service.Setup, error) {
		a := *s.App // a copy: a project's .env changes the environment
		a.Repo, a.Project = p.Repo, &p
		setup, err := s.read(ctx, &a, p.Name, total)
		setup.Repo = cmp.Or(setup.Repo, p.Repo) // people find the project by it, even if the path is the error
		setup.Problem = func(line string) { s.raise(ctx, &a, p.Name, line) }
		return setup, s.explained(err)
	}
}

func (s *serving) read(ctx context.Context, a *compose.App, name string, total int) (service.Setup, error) {
	if info, err := os.Stat(a.Repo); err != nil || !info.IsDir() {
		return service.Setup{}, fmt.Errorf("%s is not a folder", a.Repo)
	}
	top, err := a.Top(ctx)
	if err != nil {
		return service.Setup{}, err
	}
	loaded, err := config.Load(a.Sources(s.cmd.Flags(), top))
	if err != nil {
		return service.Setup{}, err
	}
	c := loaded.Config
	values := loaded.Texts()
	values["repo"] = top
	// The contents of these files are read when the project is opened.
	values[".ralph/.env"] = stamp(filepath.Join(top, compose.DotEnvFile))
	values["prompt-file"] += stamp(cmp.Or(c.PromptFile, filepath.Join(top, scaffold.Prompt)))
	values["request-template"] += stamp(c.RequestTemplate)
	live := []string{"parallel", "poll"}
	if s.joined != nil {
		live = nil
		if total > 0 { // otherwise it would hold rows that it cannot start, and that other machines could
			c.Parallel = min(c.Parallel, total)
			values["parallel"] = strconv.Itoa(c.Parallel)
		}
	}
	return service.Setup{
		Repo: top, Values: values, Live: live, Parallel: c.Parallel, Poll: c.Poll,
		Open: func(ctx context.Context, observe func(journal.Event)) (*service.Parts, error) {
			parts, err := s.openProject(ctx, a, name, c.Parallel, observe)
			return parts, s.explained(err)
		},
	}, nil
}

// explained returns an error as one line, with its hint.
func (s *serving) explained(err error) error {
	if err == nil {
		return nil
	}
	p := exit.ProblemOf(s.cmd.Context(), s.cmd.Root(), err)
	line := service.OneLine(errors.New(p.Message))
	if p.Hint != "" {
		line += "; " + p.Hint
	}
	return errors.New(line)
}

// view returns a View that prints the events of a project.
func (s *serving) view(project string) *progress.View {
	return &progress.View{UI: s.UI, Started: time.Now(), Project: project, Name: func(key string) string { return project + "/" + key }}
}

// observe records an event of a project, and prints it if it matters.
func (s *serving) observe(project string, e journal.Event) {
	s.metrics.Observe(project, e)
	s.live.Observe(project, e)
	s.mu.Lock()
	view := s.views[project]
	if view == nil {
		view = s.view(project)
		s.views[project] = view
	}
	s.mu.Unlock()
	if e.Kind == journal.EventSweep {
		if !e.Idle { // nearly every poll is idle
			s.UI.Note("%s: %s", project, screen.CleanLine(e.Text))
		}
		return
	}
	view.Event(e)
}
