package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// kind is River's kind of ralph's rows.
const kind = "ralph_issue"

// row is the content of a row: an issue that may need work. New fields may be added, but their meaning must never change,
// because machines of several versions share a database.
type row struct {
	Project string `json:"project" river:"unique"`
	Key     string `json:"key"     river:"unique"`
	// Generation counts dead rows of the issue in succession, for people. The fencing number is in the claim in git.
	Generation int    `json:"generation"`
	FollowUp   bool   `json:"follow_up,omitempty"` // the issue's request needs another run
	Account    string `json:"account,omitempty"`   // see Project
}

// Kind implements river.JobArgs.
func (row) Kind() string { return kind }

// openStates are the states of a row that has not ended. An issue has at most one such row.
func openStates() []rivertype.JobState {
	return []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
		rivertype.JobStateRetryable, rivertype.JobStateScheduled,
	}
}

// isOpen selects open rows of ralph's.
const isOpen = `kind = '` + kind + `' AND state IN ('available', 'pending', 'running', 'retryable', 'scheduled')`

// due makes a row due at once by the database's time, minus the error of that. River would use the machine's time, and rows
// of a machine whose clock is ahead would wait.
func (c *clock) due(_ context.Context, p *rivertype.JobInsertParams) error {
	at := c.Now().Add(-time.Second)
	p.ScheduledAt = &at
	return nil
}

// Priorities of rows for River; 1 is the highest.
const (
	priorityAgain    = 1 // replaces a row that died
	priorityFollowUp = 2
	priorityIssue    = 3
)

func insertion(r row, priority int) river.InsertManyParams {
	return river.InsertManyParams{Args: r, InsertOpts: &river.InsertOpts{
		MaxAttempts: 1, Queue: queueOf(r.Project), Priority: priority,
		UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: openStates()},
	}}
}

// queueOf returns the queue of a project, which machines without the project do not read. The hash makes it unique.
func queueOf(project string) string {
	sum := sha256.Sum256([]byte(project))
	plain := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(project), "-"), "-")
	return strings.Trim("ralph-"+plain[:min(len(plain), 40)], "-") + "-" + hex.EncodeToString(sum[:4])
}
