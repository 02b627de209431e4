package gitlab

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
	"github.com/ralph-pool/ralph/tracker/token"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	path   = "group/sub-group/pro.ject"
	secret = "glpat-test-token-of-ralph"
)

// rig is a project on a fake GitLab, with accounts and ralph's tracker.
type rig struct {
	*Tracker
	server  *gitlabtest.Server
	project *gitlabtest.Project
	clock   *fastClock

	ralph, ada, grace, eve *gitlabtest.User // Developer, Maintainer, Reporter, nobody

	mu     sync.Mutex
	people map[string]*gitlabtest.User // guarded by mu
}

func newRig(t *testing.T, edits ...func(*forge.Config)) *rig {
	t.Helper()
	s := gitlabtest.New(t)
	r := &rig{
		server: s, project: s.AddProject(path), clock: &fastClock{},
		ralph: s.AddUser(gitlabtest.User{Username: "ralph"}),
		ada:   s.AddUser(gitlabtest.User{Username: "ada"}),
		grace: s.AddUser(gitlabtest.User{Username: "grace"}),
		eve:   s.AddUser(gitlabtest.User{Username: "eve"}),
	}
	r.people = map[string]*gitlabtest.User{"ralph": r.ralph, "ada": r.ada, "grace": r.grace, "eve": r.eve}
	r.project.SetMember(r.ralph, gitlabtest.Developer)
	r.project.SetMember(r.ada, gitlabtest.Maintainer)
	r.project.SetMember(r.grace, gitlabtest.Reporter)
	s.AddToken(r.ralph, secret, time.Time{}, "api")
	r.Tracker = r.tracker(t, edits...)
	return r
}

// tracker makes another tracker for the same project, like another process.
func (r *rig) tracker(t *testing.T, edits ...func(*forge.Config)) *Tracker {
	t.Helper()
	cfg := forge.Config{
		Settings: tracker.Settings{
			Project: "http://" + r.server.Host() + "/" + path, BaseURL: r.server.URL, Token: token.Fixed(secret),
			MarkerKey: []byte("a key of sixteen bytes at least"), WriteSpacing: time.Nanosecond,
		},
		HTTP: transport.Config{Clock: r.clock},
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	tr, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// fastClock is a clock whose sleeps take no time.
type fastClock struct {
	mu      sync.Mutex
	slept   time.Duration
	onSleep func(time.Duration)
}

func (s *fastClock) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.slept)
}

func (s *fastClock) Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	s.slept += max(0, d)
	hook := s.onSleep
	s.mu.Unlock()
	if hook != nil && d > time.Millisecond {
		hook(d)
	}
	return nil
}

func (r *rig) list(t *testing.T, labels ...string) tracker.Listing {
	t.Helper()
	l, err := r.List(t.Context(), tracker.Query{Labels: labels})
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	return l
}

func (r *rig) get(t *testing.T, key string) tracker.Issue {
	t.Helper()
	i, err := r.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("Get(%s): %v", key, err)
	}
	return i
}

// keys returns the keys of a listing, in its order.
func keys(l tracker.Listing) string {
	var out []string
	for _, i := range l.Issues {
		out = append(out, i.Key)
	}
	return strings.Join(out, " ")
}

// calls returns the number of calls since the last Forget, and how many of them got a full answer.
func (r *rig) calls() (all, full int) {
	for _, c := range r.server.Calls() {
		all++
		if c.Status != 304 {
			full++
		}
	}
	return all, full
}
