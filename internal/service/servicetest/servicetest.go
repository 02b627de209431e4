// Package servicetest provides repositories with backlogs, and agents that wait for a signal, for tests of services.
package servicetest

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/local"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Commits is an agent command that commits one file and reports that it is done.
const Commits = `cat >/dev/null; echo work >> "$RALPH_ISSUE_KEY.txt"; git add -A; git commit -qm work; echo "<promise>COMPLETE</promise>"`

// Project is a repository with a backlog.
type Project struct {
	t           *testing.T
	Name        string
	repo, state string
	gate        string // named pipe from which waiting agents read
	Store       journaltest.Memory
	History     journal.Store       // store that the service reads; nil: Store
	Pause       service.SharedPause // for its parts; may be nil
	Elsewhere   func(context.Context) ([]journal.Record, error)
	Held        func() error
	Work        func(context.Context) error
	Folder      func(ctx context.Context, run string) ([]byte, error)
	Fetch       func(ctx context.Context, branch string) error
	Forge       func(tracker.Tracker) tracker.Tracker // wraps the backlog; may be nil
	OnDisk      func()                                // called by Problem and Close of its parts; may be nil

	mu       sync.Mutex
	err      error             // guarded by mu; error of the next Load
	agent    string            // guarded by mu
	values   map[string]string // guarded by mu
	parallel int               // guarded by mu
	cap      int64             // guarded by mu; tokens per day
	poll     time.Duration     // guarded by mu
	opened   int               // guarded by mu
	closed   int               // guarded by mu
	problems []string          // guarded by mu
	refused  []string          // guarded by mu
}

// New creates a project with the issues task-1 to task-n. Its agent commits.
func New(t *testing.T, name string, issues int) *Project {
	t.Helper()
	dir := t.TempDir()
	p := &Project{
		t: t, Name: name, repo: filepath.Join(dir, "repo"), state: filepath.Join(dir, "state"), gate: filepath.Join(dir, "gate"),
		agent: Commits, parallel: 4, poll: time.Hour, values: map[string]string{},
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main", p.repo}, {"-C", p.repo, "commit", "-q", "--allow-empty", "-m", "init"}} {
		if _, err := git.New(dir).Output(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(p.repo, ".ralph", "backlog"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range issues {
		p.Issue("task-"+strconv.Itoa(i+1), "Task "+strconv.Itoa(i+1))
	}
	if err := unix.Mkfifo(p.gate, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// Issue adds an issue.
func (p *Project) Issue(key, title string) {
	p.t.Helper()
	text := "---\ntitle: " + strconv.Quote(title) + "\nlabels: [no-human]\n---\nDo it.\n"
	if err := os.WriteFile(filepath.Join(p.repo, ".ralph", "backlog", key+".md"), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// Wait makes agents run the commands of first, and then wait for Go, once each.
func (p *Project) Wait(first ...string) {
	p.Set("agent", strings.Join(first, "")+`read _ < "`+p.gate+`"; `+Commits)
}

// Go releases one waiting agent.
func (p *Project) Go() {
	p.t.Helper()
	f, err := os.OpenFile(p.gate, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("go\n")
		_ = f.Close()
	}
	if err != nil {
		p.t.Error(err)
	}
}

// Set changes a setting: agent, parallel, poll, cap (tokens per day), or any other name.
func (p *Project) Set(name, value string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.values[name] = value
	switch name {
	case "agent":
		p.agent = value
	case "parallel":
		p.parallel, _ = strconv.Atoi(value)
	case "poll":
		p.poll, _ = time.ParseDuration(value)
	case "cap":
		p.cap, _ = strconv.ParseInt(value, 10, 64)
	}
}

// Break makes loading the configuration fail with err; nil: it succeeds again.
func (p *Project) Break(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// Opened returns how often the project was opened and closed.
func (p *Project) Opened() (opened, closed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened, p.closed
}

func (p *Project) problem(line string) {
	p.onDisk()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, line)
}

// Problems returns the problems that the service has reported, without consecutive duplicates.
func (p *Project) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Compact(slices.Clone(p.problems))
}

// Refused returns the refused configurations that the service has reported, without consecutive duplicates.
func (p *Project) Refused() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Compact(slices.Clone(p.refused))
}

// Repo returns the path of the repository.
func (p *Project) Repo() string { return p.repo }

// Project returns the project for service.Apply.
func (p *Project) Project() service.Project {
	return service.Project{Name: p.Name, Load: p.load}
}

func (p *Project) load(context.Context) (service.Setup, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return service.Setup{
		Repo: p.repo, Values: maps.Clone(p.values), Live: []string{"parallel", "poll"}, Parallel: p.parallel, Poll: p.poll, Open: p.open,
		Problem: p.problem,
	}, p.err
}

func (p *Project) open(ctx context.Context, observe func(journal.Event)) (*service.Parts, error) {
	repo, err := worktree.Open(ctx, p.repo, worktree.Options{StateDir: p.state})
	if err != nil {
		return nil, err
	}
	backlog, err := local.New(local.Config{Dir: filepath.Join(p.repo, ".ralph", "backlog"), LockDir: p.state})
	if err != nil {
		return nil, err
	}
	issues := tracker.Tracker(backlog)
	if p.Forge != nil {
		issues = p.Forge(issues)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	workers, err := pool.New(pool.Config{
		Run: run.Config{
			Repo:          repo,
			Store:         &p.Store,
			Tracker:       issues,
			Agent:         agents.Command{},
			Options:       agents.Options{Command: []string{"sh", "-c", p.agent}},
			Sandboxes:     sandboxes.NewNone(sandboxes.NoneConfig{}),
			MaxIterations: 2,
			Caps:          ledger.Caps{Day: loop.Budget{Tokens: p.cap}},
		},
		MinFree: -1, Observe: observe,
	})
	if err != nil {
		return nil, err
	}
	p.opened++
	return &service.Parts{
		Pool:      workers,
		Store:     cmp.Or[journal.Store](p.History, &p.Store),
		Tracker:   issues,
		PickUp:    "no-human",
		InReview:  "in-review",
		Merge:     "merge KEY",
		Dir:       p.state,
		Pause:     p.Pause,
		Elsewhere: p.Elsewhere,
		Folder:    p.Folder,
		Fetch:     p.Fetch,
		Held:      p.Held,
		Work:      p.Work,
		Problem:   p.problem,
		Refused: func(line string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if line != "" || len(p.refused) > 0 {
				p.refused = append(p.refused, line)
			}
		},
		Close: func() error {
			p.onDisk()
			p.mu.Lock()
			defer p.mu.Unlock()
			p.closed++
			return nil
		},
	}, nil
}

func (p *Project) onDisk() {
	if p.OnDisk != nil {
		p.OnDisk()
	}
}

// Watch records the events of a service.
type Watch struct {
	mu     sync.Mutex
	events []journal.Event // guarded by mu
	more   chan struct{}   // guarded by mu; closed at the next event
}

// NewWatch returns an empty Watch.
func NewWatch() *Watch { return &Watch{more: make(chan struct{})} }

// Observe is a value for service.Config.Observe.
func (w *Watch) Observe(project string, e journal.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.Pool = project
	w.events = append(w.events, e)
	close(w.more)
	w.more = make(chan struct{})
}

// Until waits for the nth event of a kind in a project and returns it. An empty project matches all.
func (w *Watch) Until(t *testing.T, project string, kind journal.EventKind, nth int) journal.Event {
	t.Helper()
	late := time.After(time.Minute)
	for {
		w.mu.Lock()
		n, more := 0, w.more
		for _, e := range w.events {
			if (e.Pool == project || project == "") && e.Kind == kind {
				if n++; n == nth {
					w.mu.Unlock()
					return e
				}
			}
		}
		w.mu.Unlock()
		select {
		case <-more:
		case <-late:
			t.Fatalf("%s: no %s number %d within a minute", project, kind, nth)
		}
	}
}

// Eventually polls until is returns true, for at most a minute. Use it only for changes that send no event.
func Eventually(t *testing.T, is func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-late:
			t.Fatal("it has not come to that within a minute")
		}
	}
}

// Peak returns the maximum number of concurrent runs.
func (w *Watch) Peak() (peak int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	on := 0
	for _, e := range w.events {
		switch e.Kind {
		case journal.EventStarted:
			on++
			peak = max(peak, on)
		case journal.EventEnded:
			on--
		}
	}
	return peak
}
