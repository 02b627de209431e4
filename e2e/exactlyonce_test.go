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

// A ralph process dies while it reports. Neither another clone, with its own copy of the backlog, nor the first one works the
// issue again.
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

// A ralph process dies at the end of an issue without commits. Another clone does not work the issue again, and only the first
// clone reports it.
func TestEndedInAnotherClone(t *testing.T) {
	t.Parallel()
	for _, step := range []journal.Stage{journal.StageReport, journal.StageLabel, journal.StageRelease} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			s, r := newScene(t, `issues: {"*": [[say: <no-change>nothing to do</no-change>]]}`), newRepository(t)
			key := r.backlog(t, 1)[0]
			remote := newRemote(t, r)
			other := remote.clone(t)
			order := []repository{other, r, other, r}
			if step == journal.StageReport { // the claim does not have the outcome yet
				order = []repository{r, other, r}
			}
			s.start(t, r, []string{"RALPH_TEST_CRASH_AT=" + string(step)}, "work").end(t)
			for _, c := range order {
				s.start(t, c, nil, "work").end(t)
			}
			if n := s.starts(t)[key]; n != 1 {
				t.Errorf("the agent was started %d times", n)
			}
			if here, there := s.reports(t, r, key), s.reports(t, other, key); here != 1 || there != 0 {
				t.Errorf("%d reports here, %d there", here, there)
			}
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
