package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/clitest"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

// `ralph retry` tells that the agent is parked, until when and why.
func TestRetryTellsOfParkedAgent(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.commit(t)
	state := "--state-dir=" + filepath.Join(m.root, "state")
	const taken = "The next `ralph work` works one.\n"
	if got := m.run(t, nil, "retry", state, "one"); got.status != exit.OK || got.stdout != taken {
		t.Fatalf("%+v", got)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	store, _ := journalIn(t, m.root, "state", "*")
	r := clitest.CostRun("other", 1, agents.Usage{})
	r.Started, r.Ended, r.Host = time.Now().Add(-time.Minute), time.Now(), host
	r.Facts.CompletedAt, r.Verdict.Outcome = r.Ended, journal.AgentUnavailable
	until := time.Now().Add(3 * time.Hour)
	r.Facts.Iterations = []loop.Iteration{{
		Number: 1, Agent: "claude-code", Ended: r.Ended, Failure: &agents.Failure{Class: agents.RateLimit, ResetAt: until},
	}}
	if err := store.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	got := m.run(t, nil, "retry", state, "one")
	want := taken + "Agent claude-code is parked until " + until.Format(time.DateTime) + ": its limit is reached (in a run of other).\nBefore " + until.Format(time.DateTime) + " only `ralph work one` works it.\n"
	if got.status != exit.OK || got.stdout != want {
		t.Errorf("%s%s, want %s", got.stdout, got.stderr, want)
	}
	m.write(t, ".ralph/config.yaml", "fallback: [codex]\n")
	if got := m.run(t, nil, "retry", state, "one"); got.stdout != taken {
		t.Errorf("with an agent that is available: %+v", got)
	}
	if got := m.run(t, nil, "status", state); !strings.Contains(got.stdout, "parked until") {
		t.Errorf("%+v", got)
	}
}
