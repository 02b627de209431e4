// Package service works the backlogs of many projects for as long as its process runs.
//
// Each project is a pool.Pool that sweeps repeatedly. A project that cannot be opened, or whose tracker is unreachable,
// shows its problem in one line and does not disturb the others. All projects share the slots. Nothing here writes to
// standard output, reads flags or handles signals.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// Project is a project in the service's configuration.
type Project struct {
	Name string
	// Load reads the current configuration of the project. It is called before each sweep, and regularly during one.
	Load func(ctx context.Context) (Setup, error)
}

// Setup is the configuration of a project as Load read it.
type Setup struct {
	Repo     string            // the repository, for display; also set if the configuration cannot be read
	Values   map[string]string // all settings as text, to detect changes
	Live     []string          // keys that take effect without reopening the project
	Parallel int               // maximum number of concurrent issues of the project
	Poll     time.Duration     // time between sweeps
	Problem  func(line string) // called while the project is not open, with why it cannot be opened, maybe repeatedly; also set if Load fails; may be nil
	// Open opens the project. The pool's Observe must call observe.
	Open func(ctx context.Context, observe func(journal.Event)) (*Parts, error)
}

// Parts are the components of an open project.
type Parts struct {
	Pool     *pool.Pool
	Store    journal.Store
	Tracker  tracker.Tracker
	PickUp   string // label that an issue needs to be worked
	InReview string // label of issues that wait to be merged; empty: the board does not list them
	Dir      string // the project's state folder
	Merge    string // command that merges a branch, with KEY in place of the key; empty: none
	Claims   pool.Claims
	Close    func() error
	// Problem is called with why the project is not worked, and with "" when it is again. It may block only on the disk. May be nil.
	Problem func(line string)
	Refused func(line string) // like Problem, with why the latest configuration is not used
	// Fix returns a hint about how to fix an error, or "". May be nil.
	Fix func(error) string
	// Webhook verifies deliveries. nil: the project accepts none.
	Webhook func(tracker.Delivery) (tracker.Notice, error)
	// Fetch fetches a branch's commits from the remote. nil: no remote.
	Fetch func(ctx context.Context, branch string) error
	// Work works the backlog until ctx ends, then waits for its runs. nil: the service calls Pool.Sweep repeatedly.
	Work  func(ctx context.Context) error
	Wake  func()      // makes the planner of Work look at the backlog
	Pause SharedPause // nil: pauses apply to this process only
	// Stop ends an issue's run in another process, or only the named run. nil: there are no other processes.
	Stop func(ctx context.Context, key, run string) (bool, error)
	// Folder returns a copy of the folder of another machine's run, in the format of package archive. nil: there are none.
	Folder func(ctx context.Context, run string) ([]byte, error)
	// Elsewhere lists the records of runs in other processes. nil: there are none, or they are not shown.
	Elsewhere func(ctx context.Context) ([]journal.Record, error)
	Sample    func(backlog.Skipped) string // describes an issue that only shows the format, or returns ""; nil: none does
	// Held returns why Work currently starts nothing, or nil. May be nil: then only Pool has such reasons.
	Held func() error
}

// holdReason returns why no run is started although a sweep is active, or "".
func (p *Parts) holdReason() string {
	err := p.Pool.PauseReason()
	if err == nil && p.Held != nil {
		err = p.Held()
	}
	if err == nil {
		return ""
	}
	return OneLine(err)
}

// Config configures a Service.
type Config struct {
	Log *slog.Logger // default: none
	// Observe receives all events, from one goroutine per project, in order for each project. It must not block.
	Observe func(project string, e journal.Event)
}

// Errors of methods with a project or an issue as argument.
var (
	ErrNoProject = errors.New("there is no such project")
	ErrNotOpen   = errors.New("the project is not open")
	ErrAway      = errors.New("the other machines cannot be notified now")
	ErrNotOn     = errors.New("the issue is not being worked by this service")
	ErrDraining  = errors.New("the service is ending, or the project was removed: it starts nothing more; try again when it is back")
)

// Service works the backlogs of projects. Its methods are safe for concurrent use.
type Service struct {
	c           Config
	loops       sync.WaitGroup // loops of the projects
	tick        sync.WaitGroup
	done        chan struct{} // closed when all loops have ended
	once        sync.Once
	balancing   sync.Mutex   // held during a balance
	lastBalance atomic.Int64 // time of the last balance, in Unix seconds

	readContext context.Context // ends in Wait; cancels reads of backlogs
	end         context.CancelCauseFunc
	boardReads  sync.WaitGroup // reads that Queue started; added to under mu, before readContext ends

	mu       sync.Mutex
	projects []*project // guarded by mu; in the order of the configuration
	total    int        // guarded by mu; slots of all projects; 0: unlimited
	draining bool       // guarded by mu
	refused  string     // guarded by mu; see Refuse
}

// New returns a service without projects.
func New(c Config) *Service {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Observe == nil {
		c.Observe = func(string, journal.Event) {}
	}
	s := &Service{c: c, done: make(chan struct{})}
	s.readContext, s.end = context.WithCancelCause(context.Background())
	return s
}

// Apply sets the service's projects and works them until ctx ends or Drain is called. total is the maximum number of
// concurrent issues in all projects; 0 means unlimited. A project that exists already reloads its configuration. A project
// that is no longer listed is removed when its runs have ended.
func (s *Service) Apply(ctx context.Context, list []Project, total int) {
	s.mu.Lock()
	if s.draining {
		s.mu.Unlock()
		return
	}
	s.total = total
	var ordered []*project
	for _, want := range list {
		p, known := s.find(want.Name)
		if !known {
			p = &project{s: s, name: want.Name, wakeup: make(chan struct{}, 1)}
		}
		p.setLoad(want.Load)
		ordered = append(ordered, p)
		if !known {
			s.loops.Go(func() { p.run(ctx) })
		}
	}
	for _, p := range s.projects {
		if !slices.Contains(ordered, p) {
			p.remove()
			ordered = append(ordered, p)
		}
	}
	s.projects = ordered
	started := s.lastBalance.Load() != 0
	s.mu.Unlock()
	for _, p := range s.list() {
		p.wake()
	}
	s.balance()
	if !started {
		s.tick.Go(s.maintain)
	}
}

// find returns the project with that name. The caller holds s.mu.
func (s *Service) find(name string) (*project, bool) {
	i := slices.IndexFunc(s.projects, func(p *project) bool { return p.name == name })
	if i < 0 {
		return nil, false
	}
	return s.projects[i], true
}

func (s *Service) list() []*project {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.projects)
}

// remove deletes a project that has ended, unless it was added again.
func (s *Service) remove(p *project) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.isRemoved() {
		return false
	}
	s.projects = slices.DeleteFunc(s.projects, func(other *project) bool { return other == p })
	return true
}

// Refuse records, in one line, why the latest list of projects was not applied; empty: it was applied.
func (s *Service) Refuse(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = line
}

// Refused returns the line that Refuse recorded.
func (s *Service) Refused() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Drain stops the start of new runs. Wait returns when the current runs have ended.
func (s *Service) Drain() {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	for _, p := range s.list() {
		p.drain()
	}
}

// Kill ends everything immediately; see pool.Worker.Kill.
func (s *Service) Kill() {
	s.Drain()
	for _, p := range s.list() {
		p.kill()
	}
}

// errServiceEnded cancels reads of backlogs.
var errServiceEnded = errors.New("the service has ended")

// Wait returns when every project has ended, after Drain, Kill or the end of Apply's context. It cancels reads of backlogs.
func (s *Service) Wait() {
	s.loops.Wait()
	s.mu.Lock()
	s.end(errServiceEnded)
	s.mu.Unlock()
	s.boardReads.Wait()
	s.once.Do(func() { close(s.done) })
	s.tick.Wait()
}

// Draining reports whether the service is shutting down.
func (s *Service) Draining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// Ready reports whether every project was tried once, and the service is neither shutting down nor cut off from its database.
func (s *Service) Ready() bool { return s.NotReady() == "" }

// NotReady returns why the service is not ready, or "".
func (s *Service) NotReady() string {
	list := s.list()
	switch {
	case s.Draining():
		return "draining"
	case s.lastBalance.Load() == 0, slices.ContainsFunc(list, func(p *project) bool { return !p.wasTried() }):
		return "starting"
	case slices.ContainsFunc(list, (*project).isDatabaseLost):
		return "database unavailable"
	}
	return ""
}

// stalled is the time without a balance after which the service counts as dead.
const stalled = 30 * time.Second

// Alive reports whether the service still runs its periodic work.
func (s *Service) Alive() bool { return time.Since(time.Unix(s.lastBalance.Load(), 0)) < stalled }

// maintain follows pauses and balances slots periodically until Wait returns.
func (s *Service) maintain() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			for _, p := range s.list() {
				p.follow()
			}
			s.balance()
		case <-s.done:
			return
		}
	}
}

// Projects returns the status of all projects, in the order of the configuration.
func (s *Service) Projects() []Status {
	out := []Status{}
	for _, p := range s.list() {
		out = append(out, p.status())
	}
	return out
}

// Status returns the status of a project, or ErrNoProject.
func (s *Service) Status(name string) (Status, error) {
	p, err := s.project(name)
	if err != nil {
		return Status{}, err
	}
	return p.status(), nil
}

func (s *Service) project(name string) (*project, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.find(name); ok {
		return p, nil
	}
	return nil, ErrNoProject
}

// opened returns a project and its parts, or ErrNoProject or ErrNotOpen.
func (s *Service) opened(name string) (*project, *Parts, error) {
	p, err := s.project(name)
	if err != nil {
		return nil, nil, err
	}
	parts := p.opened()
	if parts == nil {
		return nil, nil, ErrNotOpen
	}
	return p, parts, nil
}

// Runs returns records of a project's runs, oldest first.
func (s *Service) Runs(ctx context.Context, name string, q journal.Query) ([]journal.Record, error) {
	p, parts, err := s.opened(name)
	if err != nil {
		return nil, err
	}
	list, err := parts.Store.Find(ctx, q)
	if q.Run != "" && parts.Folder != nil {
		s.copyRunFolders(ctx, parts, list)
	}
	return p.clearRemotePIDs(list), err
}

// Stop asks a run of an issue to end, and removes the pick-up label so that no sweep continues it; see Retry. An empty run
// means the active one. A run that has ended is an error: by now another run may be active.
func (s *Service) Stop(ctx context.Context, name, key, run string) error {
	_, parts, err := s.opened(name)
	if err != nil {
		return err
	}
	stopped := run == "" && parts.Pool.Stop(key) || run != "" && parts.Pool.StopRun(key, run)
	if parts.Stop != nil && (run == "" || !stopped) { // the run may be here or elsewhere
		var elsewhere bool
		if elsewhere, err = parts.Stop(ctx, key, run); err != nil {
			err = fmt.Errorf("%w: %w", ErrAway, err)
		}
		stopped = stopped || elsewhere
	}
	switch {
	case stopped: // even if others could not be asked
		return errors.Join(err, parts.Tracker.Change(ctx, key, tracker.Change{RemoveLabels: []string{parts.PickUp}}))
	case err != nil:
		return err
	}
	if _, err := parts.Tracker.Get(ctx, key); errors.Is(err, tracker.ErrNotFound) {
		return err
	}
	if run != "" {
		known, err := parts.Store.Find(ctx, journal.Query{Run: run, Key: key, Limit: 1})
		if err == nil && len(known) == 0 {
			return fmt.Errorf("%s has no run %s; nothing was stopped", key, run)
		}
		return cmp.Or(err, fmt.Errorf("run %s has ended; nothing was stopped", run))
	}
	return ErrNotOn
}

// Wake makes a project look at its backlog now, for example after a webhook.
func (s *Service) Wake(name string) {
	if p, err := s.project(name); err == nil {
		p.wake()
	}
}

// Parts returns the parts of an open project, or ErrNoProject or ErrNotOpen. The service may close them at any time.
func (s *Service) Parts(name string) (*Parts, error) {
	_, parts, err := s.opened(name)
	return parts, err
}
