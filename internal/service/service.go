// Package service works the backlogs of many projects for as long as its process runs.
//
// Each project is a pool.Pool that sweeps again and again. A project that cannot be opened, or whose tracker is away, is
// shown as broken with one line, and disturbs no other. All projects share one number of slots. Nothing here writes to
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
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// Project is a project as the configuration names it.
type Project struct {
	Name string
	// Load reads the project's configuration as it is now. It is called before each sweep, and at times during one.
	Load func(ctx context.Context) (Setup, error)
}

// Setup is one reading of a project's configuration.
type Setup struct {
	Repo     string            // the repository, for people; also where the configuration cannot be read
	Values   map[string]string // every setting as text; by them a change is noticed
	Live     []string          // those of them that take effect without opening the project anew
	Parallel int               // issues of this project worked at the same time
	Poll     time.Duration     // time between sweeps
	// Open opens the project. The pool's Observe has to call observe.
	Open func(ctx context.Context, observe func(journal.Event)) (*Parts, error)
}

// Parts is an open project.
type Parts struct {
	Pool     *pool.Pool
	Store    journal.Store
	Tracker  tracker.Tracker
	PickUp   string // a label without which no sweep takes an issue
	InReview string // the label of issues whose work waits to be merged; default: they are not shown as such
	Dir      string // the project's state folder
	Merge    string // the command that merges a branch, with KEY in place of an issue's key; empty: none
	Claims   pool.Claims
	Close    func() error
	// Problem is told why the project is not worked, empty when it is again. It may wait for the disk only. Default: none.
	Problem func(line string)
	// Fix says of what is wrong what to do, if more than the error has; nil: nothing.
	Fix func(error) string
	// Webhook checks deliveries; nil: the project takes none.
	Webhook func(tracker.Delivery) (tracker.Notice, error)
	// Fetch gets a branch's commits from the remote; nil: there is none.
	Fetch func(ctx context.Context, branch string) error
	// Work works the backlog until ctx ends and its runs have ended; nil: Pool.Sweep does, again and again.
	Work  func(ctx context.Context) error
	Wake  func()      // has whoever plans for Work look at the backlog
	Pause SharedPause // nil: a pause holds in this process
	// Stop ends the run of an issue that another process works, or only this one if it is named; nil: there are no others.
	Stop func(ctx context.Context, key, run string) (bool, error)
	// Folder is a copy, as package archive makes them, of the folder of a run that another machine has worked; nil: there is none.
	Folder func(ctx context.Context, run string) ([]byte, error)
	// Elsewhere lists the records of runs that other processes work; nil: there are none, or nobody wants to know.
	Elsewhere func(ctx context.Context) ([]journal.Record, error)
	// Held is why Work begins nothing for now, nil if nothing is in its way; nil: only Pool knows.
	Held func() error
}

// held is why nothing is begun for now, although a sweep is on.
func (p *Parts) held() string {
	err := p.Pool.Held()
	if err == nil && p.Held != nil {
		err = p.Held()
	}
	if err == nil {
		return ""
	}
	return OneLine(err)
}

// Config is a service's set-up.
type Config struct {
	Log *slog.Logger // default: none
	// Observe gets the events of all projects, each project's in order, from one goroutine a project. It must not block.
	Observe func(project string, e journal.Event)
}

// The errors of the methods that name a project or an issue.
var (
	ErrNoProject = errors.New("there is no such project")
	ErrNotOpen   = errors.New("the project is not open")
	ErrAway      = errors.New("the others cannot be told now")
	ErrNotOn     = errors.New("the issue is not being worked by this service")
)

// Service works projects. Its methods are safe for concurrent use.
type Service struct {
	c     Config
	loops sync.WaitGroup // of the projects
	tick  sync.WaitGroup
	done  chan struct{} // closed when all loops have ended
	once  sync.Once
	beat  atomic.Int64 // when balance ran last, in Unix seconds

	life  context.Context // ends with Wait; looks at backlogs end with it
	end   context.CancelCauseFunc
	looks sync.WaitGroup // that Queue has begun; grows under mu before the end of life

	mu       sync.Mutex
	projects []*project // guarded by mu; in the configuration's order
	total    int        // guarded by mu; slots of all projects; 0: no limit
	draining bool       // guarded by mu
	refused  string     // guarded by mu; see Refuse
}

// New makes a service without projects.
func New(c Config) *Service {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Observe == nil {
		c.Observe = func(string, journal.Event) {}
	}
	s := &Service{c: c, done: make(chan struct{})}
	s.life, s.end = context.WithCancelCause(context.Background())
	return s
}

// Apply makes these the service's projects, which are worked until ctx ends or Drain. total is how many issues are worked
// at the same time in all of them; 0 is no limit. A project that is there already reads its configuration again, and one
// that is not named any more goes when its runs have ended.
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
			p = &project{s: s, name: want.Name, poke: make(chan struct{}, 1)}
		}
		p.want(want.Load)
		ordered = append(ordered, p)
		if !known {
			s.loops.Go(func() { p.run(ctx) })
		}
	}
	for _, p := range s.projects {
		if !slices.Contains(ordered, p) {
			p.leave()
			ordered = append(ordered, p)
		}
	}
	s.projects = ordered
	started := s.beat.Load() != 0
	s.mu.Unlock()
	for _, p := range s.list() {
		p.wake()
	}
	s.balance()
	if !started {
		s.tick.Go(s.lookAfter)
	}
}

// find returns the project of that name. s.mu is held.
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

// remove forgets a project that has come to its end, unless it is wanted again.
func (s *Service) remove(p *project) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.isLeaving() {
		return false
	}
	s.projects = slices.DeleteFunc(s.projects, func(other *project) bool { return other == p })
	return true
}

// Refuse notes why the latest list of projects was not applied, in one line; empty: it was.
func (s *Service) Refuse(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = line
}

// Refused is what Refuse noted.
func (s *Service) Refused() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Drain starts nothing more. Wait returns when the runs that are on have come to their end.
func (s *Service) Drain() {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	for _, p := range s.list() {
		p.drain()
	}
}

// Kill ends everything at once; see pool.Worker.Kill.
func (s *Service) Kill() {
	s.Drain()
	for _, p := range s.list() {
		p.kill()
	}
}

// errOver ends looks at backlogs.
var errOver = errors.New("the service has ended")

// Wait returns when every project has come to its end, after Drain, Kill or the end of Apply's context. Looks at backlogs end, too.
func (s *Service) Wait() {
	s.loops.Wait()
	s.mu.Lock()
	s.end(errOver)
	s.mu.Unlock()
	s.looks.Wait()
	s.once.Do(func() { close(s.done) })
	s.tick.Wait()
}

// Draining reports whether the service is coming to its end.
func (s *Service) Draining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// Ready reports that every project has been tried once, and that the service is not coming to its end nor cut off from the others.
func (s *Service) Ready() bool {
	if s.Draining() || s.beat.Load() == 0 {
		return false
	}
	return !slices.ContainsFunc(s.list(), func(p *project) bool { return !p.wasTried() || p.isCutOff() })
}

// stalled is how long the service may not have looked after its slots before it counts as dead.
const stalled = 30 * time.Second

// Alive reports that the service still looks after its projects.
func (s *Service) Alive() bool { return time.Since(time.Unix(s.beat.Load(), 0)) < stalled }

// lookAfter shares the slots again and again until Wait returns.
func (s *Service) lookAfter() {
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

// Projects lists the projects as they are now, in the configuration's order.
func (s *Service) Projects() []Status {
	list := s.list()
	out := make([]Status, len(list))
	for i, p := range list {
		out[i] = p.status()
	}
	return out
}

// Status is one project as it is now; see ErrNoProject.
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

// opened returns a project and its parts.
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

// Runs lists records of a project, oldest first.
func (s *Service) Runs(ctx context.Context, name string, q journal.Query) ([]journal.Record, error) {
	p, parts, err := s.opened(name)
	if err != nil {
		return nil, err
	}
	list, err := parts.Store.Find(ctx, q)
	if q.Run != "" && parts.Folder != nil {
		s.bring(ctx, parts, list)
	}
	return p.placed(list), err
}

// Stop asks a run of an issue to end, and takes the pick-up label away so that no sweep continues it; see Retry. Without a run it
// is whichever is on; one that is over is refused: the next may be on by now.
func (s *Service) Stop(ctx context.Context, name, key, run string) error {
	_, parts, err := s.opened(name)
	if err != nil {
		return err
	}
	stopped := false
	if run == "" {
		stopped = parts.Pool.Stop(key)
	} else {
		stopped = parts.Pool.StopRun(key, run)
	}
	if parts.Stop != nil && (run == "" || !stopped) { // here or elsewhere
		var elsewhere bool
		if elsewhere, err = parts.Stop(ctx, key, run); err != nil {
			err = fmt.Errorf("%w: %w", ErrAway, err)
		}
		stopped = stopped || elsewhere
	}
	switch {
	case stopped: // also where others could not be asked
		return errors.Join(err, parts.Tracker.Change(ctx, key, tracker.Change{RemoveLabels: []string{parts.PickUp}}))
	case err != nil:
		return err
	}
	if _, err := parts.Tracker.Get(ctx, key); errors.Is(err, tracker.ErrNotFound) {
		return err
	}
	if run != "" {
		return fmt.Errorf("run %s is over; nothing was stopped", run)
	}
	return ErrNotOn
}

// Wake has a project look at its backlog now, such as after a webhook.
func (s *Service) Wake(name string) {
	if p, err := s.project(name); err == nil {
		p.wake()
	}
}

// Parts returns an open project's parts; see ErrNoProject and ErrNotOpen. They may be closed at any time.
func (s *Service) Parts(name string) (*Parts, error) {
	_, parts, err := s.opened(name)
	return parts, err
}

// Pause starts nothing more in a project, also after a restart, until it is called with false. Runs that are on go on. With
// Parts.Pause that holds for all processes that work the project.
func (s *Service) Pause(name string, paused bool) error {
	p, _, err := s.opened(name)
	if err != nil {
		return err
	}
	if err := p.pause(paused); err != nil {
		return err
	}
	s.balance()
	p.wake()
	return nil
}
