package pool_test

import (
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

// renamed is a silent provider of another name.
type renamed struct{ *silent }

func (renamed) Name() string { return "renamed" }

// What a dead run has left in a sandbox is ended by the provider of that sandbox, whatever runs have now.
func TestRecoverFromAnotherSandbox(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	s := &silent{binding: newBinding(nil), files: sandboxes.Bind}
	f.Config.Run.Sandboxes, f.Config.Run.Earlier = newBinding(nil), sandboxes.NewRegistry(renamed{s})
	f.issue("a")
	id := f.one().ID
	f.issue("a")
	f.pretend("a", journal.StageWork, func(r *journal.Record) { r.Sandbox = "renamed" })
	s.left.Store(id, true)
	s.away.Store(true)
	if got := f.sweep(t.Context()); len(got.Broken) != 1 {
		t.Errorf("while the engine does not answer: %+v", got)
	}
	s.away.Store(false)
	f.sweep(t.Context())
	if r := f.runs("a")[0]; s.count() != 0 || r.Ended.IsZero() {
		t.Errorf("%d sandboxes are left; ended %v", s.count(), r.Ended)
	}
	f.clean()
}
