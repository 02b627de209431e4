package pool

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Publish says what happens to the commits of a run that succeeded.
type Publish string

const (
	// PublishBranch leaves them on the branch, and pushes it where there is a remote.
	PublishBranch Publish = "branch"
	// PublishMerge rebases them onto the base, runs the gate again, moves the base branch, and closes the issue.
	PublishMerge Publish = "merge"
	// PublishRequest pushes the branch and opens, or updates, a pull or merge request; a draft when the gate did not pass.
	PublishRequest Publish = "pr"
	// PublishNone leaves them on the local branch.
	PublishNone Publish = "none"
)

// Labels are the labels by which an issue's state is shown to people.
type Labels struct {
	NeedsHuman string // default "needs-human"
	NeedsInfo  string // default "needs-info"
	InReview   string // default "in-review"
	Claimed    string // on issues that are being worked; default: none is set
	Failed     string // on issues whose next attempt is waited for; default: none is set
}

// Requests says what ralph's pull and merge requests look like.
type Requests struct {
	Body      loop.Prompt // template; default RequestTemplate
	Target    string      // branch they are for; default: the base
	Labels    []string
	Reviewers []string
	Assignees []string
	MaxRounds int // follow-up runs of one request before a person has to look; default 3; negative: none
}

// Retry limits how often an issue is tried.
type Retry struct {
	MaxAttempts int           // default 3
	Backoff     time.Duration // after the first failed attempt; doubles with each. Default 1 min; negative: none
	BackoffMax  time.Duration // default 1 h
}

// Config is a pool's set-up. Repo, Tracker, Journal, Agent, Sandboxes and StateDir are required; the zero value of
// every other field means the default its comment names.
type Config struct {
	Repo      *worktree.Repo
	Tracker   tracker.Tracker
	Journal   *Journal
	Agent     agents.Agent
	Sandboxes sandboxes.Provider
	StateDir  string // runs/ is made below it

	Options      agents.Options
	Require      []string // labels an issue must all carry; default "no-human"
	Exclude      []string // labels none of which it may carry; the state labels always count
	Parallel     int      // issues worked at the same time; default 4
	Limit        int      // issues worked in one sweep; 0: no limit
	Base         string   // what runs start from; default: the branch checked out
	Publish      Publish  // default PublishRequest where the tracker can do that, else PublishBranch
	Requests     Requests
	Protected    []string // paths that commits which leave the repository may not touch; default ProtectedPaths()
	BranchPrefix string   // default "ralph/"

	Prompt        loop.Prompt // default loop.DefaultTemplate
	Before        []string    // host commands, run in the worktree before the sandbox exists; each `sh -c`
	Setup         []loop.Command
	Copy          []string // untracked files of the checkout that go into the worktree
	Gate          []loop.Command
	Signals       []string
	MaxIterations int
	NoProgress    int
	Timers        loop.Timers
	Budget        loop.Budget       // for all attempts of an issue together, until a person takes over
	Env           []string          // for everything that runs in the sandbox
	Network       Network           // what isolated runs may reach
	Limits        sandboxes.Limits  // of one run; zero means the sandbox\'s defaults
	Mounts        []sandboxes.Mount // of the user\'s, for isolating sandboxes
	Secrets       *Secrets          // values that are withheld; who obtains one adds it. Default: none but the agent's own

	Retry          Retry
	Labels         Labels
	ClaimLife      time.Duration // default 10 min; renewed at a third
	Reconcile      time.Duration // between looks at the issue while its run is on; default 30 s
	ProgressReport time.Duration // a run that lasts longer is reported as being worked; default 30 s
	StopGrace      time.Duration // for agents to end after a stop; default 30 s
	KeepRuns       int           // run folders kept for each issue; default 20
	MinFree        int64         // bytes that runs must leave free where StateDir is; default 1 GiB; negative: no floor

	// Observe gets every event, one at a time; it must not block for long, and not call the pool.
	Observe func(Event)
	Log     zerolog.Logger
}

func (c Config) withDefaults() Config {
	if len(c.Require) == 0 {
		c.Require = []string{"no-human"}
	}
	c.Parallel = cmp.Or(c.Parallel, 4)
	if c.Publish == "" {
		c.Publish = PublishBranch
		if _, ok := tracker.As[tracker.Requester](c.Tracker); ok && c.Repo.Remote() != "" {
			c.Publish = PublishRequest
		}
	}
	if c.Requests.Body.Template == "" {
		c.Requests.Body = loop.Prompt{Template: RequestTemplate, Name: "built-in request template"}
	}
	c.Requests.MaxRounds = cmp.Or(c.Requests.MaxRounds, 3)
	if c.Protected == nil {
		c.Protected = ProtectedPaths()
	}
	c.BranchPrefix = cmp.Or(c.BranchPrefix, "ralph/")
	c.Labels.NeedsHuman = cmp.Or(c.Labels.NeedsHuman, "needs-human")
	c.Labels.NeedsInfo = cmp.Or(c.Labels.NeedsInfo, "needs-info")
	c.Labels.InReview = cmp.Or(c.Labels.InReview, "in-review")
	c.Retry.MaxAttempts = cmp.Or(c.Retry.MaxAttempts, 3)
	c.Retry.Backoff = max(0, cmp.Or(c.Retry.Backoff, time.Minute))
	c.Retry.BackoffMax = cmp.Or(c.Retry.BackoffMax, time.Hour)
	c.ClaimLife = cmp.Or(c.ClaimLife, 10*time.Minute)
	c.Reconcile = cmp.Or(c.Reconcile, 30*time.Second)
	c.ProgressReport = cmp.Or(c.ProgressReport, 30*time.Second)
	c.StopGrace = cmp.Or(c.StopGrace, 30*time.Second)
	c.KeepRuns = cmp.Or(c.KeepRuns, 20)
	c.MinFree = cmp.Or(c.MinFree, 1<<30)
	if c.Prompt.Inline == "" && c.Prompt.Template == "" {
		c.Prompt.Template, c.Prompt.Name = loop.DefaultTemplate, "built-in prompt"
	}
	if c.Secrets == nil {
		c.Secrets = NewSecrets()
	}
	if c.Observe == nil {
		c.Observe = func(Event) {}
	}
	return c
}

// complete reports what is missing and has no default.
func (c Config) complete() error {
	var errs []error
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New(what))
		}
	}
	need(c.Repo != nil, "Repo is required")
	need(c.Tracker != nil, "Tracker is required")
	need(c.Journal != nil, "Journal is required")
	need(c.Agent != nil, "Agent is required")
	need(c.Sandboxes != nil, "Sandboxes is required")
	need(c.StateDir != "", "StateDir is required")
	return errors.Join(errs...)
}

func (c Config) validate() error {
	var errs []error
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New(what))
		}
	}
	need(c.Parallel > 0, "Parallel must be at least 1")
	need(c.Limit >= 0, "Limit must not be negative")
	need(c.Retry.MaxAttempts > 0, "Retry.MaxAttempts must be at least 1")
	need(slices.Contains([]Publish{PublishBranch, PublishMerge, PublishRequest, PublishNone}, c.Publish),
		fmt.Sprintf("Publish must be branch, merge, pr or none, not %q", c.Publish))
	if c.Publish == PublishRequest {
		_, can := tracker.As[tracker.Requester](c.Tracker)
		need(can, fmt.Sprintf("publish pr: tracker %s hosts no code; use branch or merge", c.Tracker.Name()))
		need(c.Repo.Remote() != "", "publish pr needs a remote to push to")
	}
	errs = append(errs, checkPatterns(c.Protected), c.Requests.Body.Check(requestKeys()))
	for _, l := range c.Require {
		need(strings.TrimSpace(l) != "", "Require has an empty label")
	}
	errs = append(errs, c.Agent.Check(c.Options), c.Prompt.Check(PromptKeys()))
	return errors.Join(errs...)
}

// Pool works one backlog of one repository.
type Pool struct {
	cfg     Config
	process string // start token of this process
	host    string

	killed chan struct{} // closed by Kill
	once   sync.Once

	observe sync.Mutex // one event at a time
	secrets *Secrets
	disk    *disk.Guard
	opened  atomic.Bool // a sandbox has opened, so that one that does not is its run's own
}

// errKilled is the cause of everything that ends by Kill.
var errKilled = errors.New("killed")

// New checks the configuration, all of it, and makes a pool. It starts nothing.
func New(c Config) (*Pool, error) {
	if err := c.complete(); err != nil {
		return nil, fmt.Errorf("pool configuration: %w", err)
	}
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("pool configuration: %w", err)
	}
	process, err := proc.Started(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("pool: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("pool: %w", err)
	}
	return &Pool{
		cfg: c, process: process, host: host, killed: make(chan struct{}), secrets: c.Secrets,
		disk: &disk.Guard{Place: c.StateDir, Floor: c.MinFree},
	}, nil
}

// Kill ends everything the pool is doing, at once: agents are killed, not asked. Work that is on disk is still taken
// back and claims are released. It may be called at any time, from any goroutine.
func (p *Pool) Kill() { p.once.Do(func() { close(p.killed) }) }

// untilKilled derives a context that ends with Kill, and not with ctx.
func (p *Pool) untilKilled(ctx context.Context) (context.Context, context.CancelFunc) {
	hard, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-p.killed:
			cancel(errKilled)
		case <-hard.Done():
		}
	}()
	return hard, func() { cancel(context.Canceled); <-done }
}

func (p *Pool) emit(e Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e = p.secrets.event(e)
	p.observe.Lock()
	defer p.observe.Unlock()
	p.cfg.Observe(e)
}

// newRun makes a run id: sortable by time, unique on every machine.
func newRun(now time.Time) string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	return now.UTC().Format("20060102-150405-") + hex.EncodeToString(b[:])
}
