package e2e

import (
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// Two concurrent sweeps of one repository work each issue once.
func TestTwoSweepsOnOneBacklog(t *testing.T) {
	t.Parallel()
	s, r := newScene(t, doIt), newRepository(t)
	keys := r.backlog(t, 40)
	s.atOnce(t, r, r)
	s.worked(t, keys, r)
	s.clean(t, r)
}

// Three clones of one remote, each with its own copy of the backlog: only the remote can coordinate them.
func TestThreeClonesOfOneRemote(t *testing.T) {
	t.Parallel()
	s, r := newScene(t, doIt), newRepository(t)
	keys := r.backlog(t, 40)
	remote := newRemote(t, r)
	a, b, c := remote.clone(t), remote.clone(t), remote.clone(t)
	s.atOnce(t, a, b, c)
	s.worked(t, keys, remote)
	s.clean(t, a, b, c, remote)
}

// A ralph process dies while it reports. Another clone, with its own copy of the backlog, completes the report. The first
// clone's copy does not show that, but the issue is not worked there again.
func TestReportedInAnotherClone(t *testing.T) {
	t.Parallel()
	for _, step := range []journal.Stage{journal.StageLabel, journal.StageRelease} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			s, r := newScene(t, doIt), newRepository(t)
			keys := r.backlog(t, 1)
			remote := newRemote(t, r)
			other := remote.clone(t)
			s.start(t, r, []string{"RALPH_TEST_CRASH_AT=" + string(step)}, "work").end(t)
			for _, c := range []repository{other, r, other, r} {
				s.sweep(t, c, 0)
			}
			s.worked(t, keys, remote)
			s.clean(t, r, other)
		})
	}
}

// atOnce runs one sweep in each repository concurrently.
func (s scene) atOnce(t *testing.T, rs ...repository) {
	t.Helper()
	var all []*ralph
	for _, r := range rs {
		all = append(all, s.start(t, r, nil, "work"))
	}
	for _, p := range all {
		if status := p.end(t); status != 0 {
			t.Errorf("a sweep ends with status %d", status)
		}
	}
}

// worked checks that each issue was worked exactly once, and that its branch in r has exactly its commit.
func (s scene) worked(t *testing.T, keys []string, r repository) {
	t.Helper()
	starts := s.starts(t)
	for _, key := range keys {
		if n := starts[key]; n != 1 {
			t.Errorf("%s: the agent was started %d times", key, n)
		}
		if _, err := r.try("rev-parse", "--verify", "--quiet", "refs/heads/ralph/"+key); err != nil {
			t.Errorf("%s has no branch", key)
			continue
		}
		if n := r.commits(t, "ralph/"+key); n != 1 {
			t.Errorf("%s: %d commits on its branch", key, n)
		}
	}
	if len(starts) != len(keys) {
		t.Errorf("%d issues were worked, want %d", len(starts), len(keys))
	}
}
