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

// kind is what River calls rows of ralph's.
const kind = "ralph_issue"

// row is the content of a row: an issue that may need work. Fields may be added and never change their meaning: machines of
// several versions share a database.
type row struct {
	Project string `json:"project" river:"unique"`
	Key     string `json:"key"     river:"unique"`
	// Generation counts the rows in a row that died. It is for people: the claim in git has the number that fences.
	Generation int    `json:"generation"`
	FollowUp   bool   `json:"follow_up,omitempty"` // the issue's request needs another run
	Account    string `json:"account,omitempty"`   // see Project
}

// Kind is for River.
func (row) Kind() string { return kind }

// openStates are those of a row that is not over. There is one such row for an issue.
func openStates() []rivertype.JobState {
	return []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
		rivertype.JobStateRetryable, rivertype.JobStateScheduled,
	}
}

// isOpen holds for an open row of ralph's.
const isOpen = `kind = '` + kind + `' AND state IN ('available', 'pending', 'running', 'retryable', 'scheduled')`

// due makes a row due at once by the database's time, less a moment for the error of that. River takes the machine's own: rows of
// one whose clock is ahead would wait.
func (c *clock) due(_ context.Context, p *rivertype.JobInsertParams) error {
	at := c.Now().Add(-time.Second)
	p.ScheduledAt = &at
	return nil
}

// The priorities of rows, by which River takes them.
const (
	priorityAgain    = 1 // in the place of a row that died
	priorityFollowUp = 2
	priorityIssue    = 3
)

func insertion(r row, priority int) river.InsertManyParams {
	return river.InsertManyParams{Args: r, InsertOpts: &river.InsertOpts{
		MaxAttempts: 1, Queue: queueOf(r.Project), Priority: priority,
		UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: openStates()},
	}}
}

// queueOf is the queue of a project: machines without it never see its rows. Names that River does not allow have a hash.
func queueOf(project string) string {
	sum := sha256.Sum256([]byte(project))
	plain := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(project), "-"), "-")
	return strings.Trim("ralph-"+plain[:min(len(plain), 40)], "-") + "-" + hex.EncodeToString(sum[:4])
}
