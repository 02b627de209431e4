package pool_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal/sqlite"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker/local"
	"github.com/ralph-pool/ralph/worktree"
)

// pointerAgent is an agent that is a pointer.
type pointerAgent struct{ agents.Command }

// A nil pointer as a part, or a repository that was not opened, is refused by name, so that it does not end the first sweep.
func TestPartsThatAreNilAreRefused(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*pool.Config){
		"Repo":              func(c *pool.Config) { c.Run.Repo = &worktree.Repo{} },
		"Store":             func(c *pool.Config) { c.Run.Store = (*sqlite.Store)(nil) },
		"Sandboxes":         func(c *pool.Config) { c.Run.Sandboxes = (*sandboxes.None)(nil) },
		"Run.Tracker":       func(c *pool.Config) { c.Run.Tracker = (*local.Tracker)(nil) },
		"Run.Agent":         func(c *pool.Config) { c.Run.Agent = (*pointerAgent)(nil) },
		"Fallback[0].Agent": func(c *pool.Config) { c.Run.Fallback = agents.Chain{{Agent: (*pointerAgent)(nil)}} },
		"Attempts[0].Agent": func(c *pool.Config) { c.Run.Attempts = agents.Chain{{Agent: (*pointerAgent)(nil)}} },
		"Review.Agent":      func(c *pool.Config) { c.Run.Review.Agent = (*pointerAgent)(nil) },
		"Claims":            func(c *pool.Config) { c.Claims = (*worktree.Repo)(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			set(&f.Config)
			if _, err := pool.New(f.Config); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
		})
	}
}

// New names all errors at once, those of the pool and those of its runs.
func TestErrorsOfPoolAndRuns(t *testing.T) {
	t.Parallel()
	c := newFixture(t, commits).Config
	c.Parallel, c.Run.KeepRuns, c.Run.Publish = -1, -1, "everywhere"
	_, err := pool.New(c)
	for _, want := range []string{"Parallel must", "KeepRuns must", "Publish must"} {
		if err == nil || strings.Count(err.Error(), want) != 1 {
			t.Errorf("%v: %q is not in it once", err, want)
		}
	}
}
