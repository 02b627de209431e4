package pool_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// once returns an agent that commits at its first start, and a function that counts its starts.
func once(t *testing.T, says string) (agent string, starts func() int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "starts")
	agent = `echo x >>` + path + `; ` + strings.Replace(commits, done, says, 1)
	return agent, func() int {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "x")
	}
}

// If ralph is stopped or dies during the gate, an agent that has said that it is done does not work again. One that has not said
// so, or whose gate had failed, does.
func TestStopDuringTheGate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		says, gate string
		outcome    journal.Outcome
		starts     int
	}{
		"done":                {done, "true", journal.Succeeded, 1},
		"not done":            {"", "true", journal.Failed, 2},
		"the gate fails then": {done, "test -f other", journal.GateFailed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent, starts := once(t, test.says)
			f := newFixture(t, agent)
			f.Config.Run.MaxIterations = 1
			began := newPipe(t)
			f.Config.Run.Gate = lines("test -e .git/no || { echo x >" + began.path + "; exec sleep 1000; }")
			f.Config.Run.GateOn = "worktree"
			f.issue("a")
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			began.then(func() { stop(nil) })
			if r := f.only(f.sweep(ctx)); r.Verdict.Outcome != journal.Interrupted {
				t.Fatalf("%+v", r.Verdict)
			}
			f.clean()
			f.Config.Run.Gate = lines(test.gate)
			r := f.one()
			if r.Verdict.Outcome != test.outcome || starts() != test.starts {
				t.Errorf("%+v after %d starts of the agent, want %d", r.Verdict, starts(), test.starts)
			}
			f.clean()
		})
	}
}

// The same after a death at any save of the stage Work: the agent works again only if it had not said that it is done.
func TestDeathDuringTheGate(t *testing.T) {
	t.Parallel()
	probe := newFixture(t, commits)
	probe.Config.Run.Gate = lines("test -f a.txt")
	probe.issue("a")
	m, _ := probe.dieAt(0, true)
	last := len(m.saved) - slices.Index(reversed(m.saved), journal.StageWork) // the last save while the agent worked: it has said so
	agent, starts := once(t, done)
	f := newFixture(t, agent)
	f.Config.Run.Gate = lines("test -f a.txt")
	f.issue("a")
	if _, died := f.dieAt(last, true); !died {
		t.Fatal("ralph did not die")
	}
	f.bury(f.repo)
	if got := outcomes(f.sweep(t.Context())); got["a"] != journal.Succeeded || starts() != 1 {
		t.Errorf("%v after %d starts of the agent", got, starts())
	}
	f.clean()
}

// The same for a death between the agent's end and the end of the import. What the agent has left uncommitted needs it again.
func TestDeathBeforeTheImport(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		leaves string
		starts int
	}{"all is committed": {"", 1}, "not all is committed": {"; echo more > more", 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent, starts := once(t, test.leaves+done)
			f := newFixture(t, agent)
			f.Config.Run.Gate = lines("test -f a.txt")
			f.issue("a")
			said := 0 // the save
			for save := 1; said == 0; save++ {
				probe := newFixture(t, commits)
				probe.Config.Run.Gate = f.Config.Run.Gate
				probe.issue("a")
				if _, died := probe.dieAt(save, true); !died {
					t.Fatal("no save has the signal before the import")
				}
				if r := probe.runs("a")[0]; r.Facts.Said && r.Facts.SignalTip == "" && r.Commits == 0 {
					said = save
				}
			}
			if _, died := f.dieAt(said, true); !died {
				t.Fatal("ralph did not die")
			}
			f.bury(f.repo)
			if got := outcomes(f.sweep(t.Context())); got["a"] != journal.Succeeded || starts() != test.starts {
				t.Errorf("%v after %d starts of the agent, want %d", got, starts(), test.starts)
			}
			f.clean()
		})
	}
}

func reversed(list []journal.Stage) []journal.Stage {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}
