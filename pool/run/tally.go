package run

import (
	"encoding/json"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree"
)

// RecordOf is a tally for other machines.
func RecordOf(t journal.Tally) worktree.Record {
	r := worktree.Record{
		Run: t.Run, Host: t.Host, Agent: t.Agent, Model: t.Model, Outcome: string(t.Outcome), Hash: t.Hash, Tip: t.Tip, At: t.At,
		RetryAt: t.RetryAt, Attempts: t.Attempts, Failures: t.Failures, Rounds: t.Rounds, Spend: worktree.Spend(t.Spent), Commands: t.Commands,
	}
	if t.Asked != nil {
		r.Asked, _ = json.Marshal(t.Asked) // it has texts, a time and truth values only
	}
	return r
}

// TallyOf is what a claim knows of an issue's runs.
func TallyOf(r worktree.Record) journal.Tally {
	t := journal.Tally{
		Run: r.Run, Host: r.Host, Agent: r.Agent, Model: r.Model, Outcome: journal.Outcome(r.Outcome), Hash: r.Hash, Tip: r.Tip, At: r.At,
		RetryAt: r.RetryAt, Final: r.Finished, Attempts: r.Attempts, Failures: r.Failures, Rounds: r.Rounds, Spent: agents.Usage(r.Spend), Commands: r.Commands,
	}
	var asked journal.Asked
	if json.Unmarshal(r.Asked, &asked) == nil {
		t.Asked = &asked
	}
	return t
}
