// Package clitest provides records of runs and a pseudo terminal to the tests of commands.
package clitest

import (
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

// CostRun returns the record of a run of agent "a" that began at noon of the given day of March 2026, took a minute and succeeded.
func CostRun(key string, day int, used agents.Usage) journal.Record {
	r := journal.Record{Run: journal.Run{
		ID: fmt.Sprint(key, day), Kind: journal.KindIssue, Key: key, Agent: "a", Started: time.Date(2026, 3, day, 12, 0, 0, 0, time.Local),
	}}
	r.Ended, r.Verdict.Outcome = r.Started.Add(time.Minute), journal.Succeeded
	r.Facts.Usage, r.Facts.End, r.Facts.Iterations = used, loop.EndMaxIterations, []loop.Iteration{{Number: 1}}
	return r
}
