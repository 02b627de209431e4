package look

import (
	"testing"
	"time"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

// The phase distinguishes the gate from the agent, and the clean checkout from the worktree.
func TestPhase(t *testing.T) {
	t.Parallel()
	var r journal.Record
	r.Started, r.Dir, r.Stage = time.Now(), t.TempDir(), journal.StageWork
	f, err := journal.OpenFolder(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		e           journal.Event
		text, short string
	}{
		{journal.Event{Kind: journal.EventStage, Stage: journal.StageBaseline}, "baseline", "baseline"},
		{journal.Event{Kind: journal.EventSetup, Place: journal.PlaceBase, Text: "npm ci"}, "baseline: setup: npm ci", "setup"},
		{journal.Event{Kind: journal.EventStage, Stage: journal.StageWork}, "work", "work"},
		{journal.Event{Kind: journal.EventIteration, Iteration: 2}, "iteration 2", "iteration 2"},
		{journal.Event{Kind: journal.EventAgent, Text: "reads"}, "iteration 2", "iteration 2"},
		{journal.Event{Kind: journal.EventGate, Text: "go test"}, "iteration 2: gate: go test", "gate"},
		{journal.Event{Kind: journal.EventGate, Text: "go test", Check: &loop.Check{}}, "iteration 2: gate: go test", "gate"},
		{journal.Event{Kind: journal.EventGate, Place: journal.PlaceCheckout, Text: "go test"}, "verify: gate on a clean checkout: go test", "verify"},
		{journal.Event{Kind: journal.EventStage, Stage: journal.StagePublish}, "publish", "publish"},
	} {
		if err := f.Append(step.e); err != nil {
			t.Fatal(err)
		}
		if text, short, _ := phase(r); text != step.text || short != step.short {
			t.Errorf("%q, %q, want %q, %q", text, short, step.text, step.short)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
