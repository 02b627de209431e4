package claim

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
)

// version is the format of the document. An older ralph refuses a newer document.
const version = 1

// maxCount is more than anything is ever counted to. Whoever may push to the remote can write a claim whose next count would be none.
const maxCount = 1 << 40

// Holder is who holds a claim.
type Holder struct {
	Owner      string    `json:"owner"` // unique id of the ralph process's sweep or run
	Host       string    `json:"host"`
	PID        int       `json:"pid"`     // 0: no process; the run waits to be continued
	Started    string    `json:"started"` // start time of that process, so that a reused PID is not mistaken for it
	Run        string    `json:"run"`
	Generation int       `json:"-"` // fencing number; grows with every take-over
	Expires    time.Time `json:"expires"`
	// Until is the same on the host's own clock, which nobody sets and which stands still while the machine sleeps.
	Until time.Duration `json:"until,omitempty"`
	Hash  string        `json:"hash"`            // of the frozen issue
	Place string        `json:"place,omitempty"` // where on the host the run is known
	Mark  string        `json:"-"`               // for the record, unless it has one
}

// Record is what is known of an issue's runs, on whichever machine they were. All limits are judged by it.
type Record struct {
	Run      string    `json:"run,omitempty"`     // the latest
	Host     string    `json:"host,omitempty"`    // of that run, as people know it
	Outcome  string    `json:"outcome,omitempty"` // of that run
	Hash     string    `json:"hash,omitempty"`    // of the text that was worked
	Tip      string    `json:"tip,omitempty"`
	At       time.Time `json:"at,omitzero"`        // when the outcome was decided, by that machine's clock
	Runs     int       `json:"runs,omitempty"`     // that have ended
	Attempts int       `json:"attempts,omitempty"` // used up, since a person last took over
	Failures int       `json:"failures,omitempty"` // those that used up no attempt included
	Rounds   int       `json:"rounds,omitempty"`   // follow-up rounds
	Spend    Spend     `json:"spend,omitzero"`     // since a person last took over, by the present run, too
	// Open is the part of Spend whose runs have not come to their end, by run.
	Open    map[string]Spend `json:"open,omitempty"`
	RetryAt time.Time        `json:"retry_at,omitzero"`
	// Parked are the agents that were unavailable, in the caller's format.
	Parked json.RawMessage `json:"parked,omitempty"`
	// Asked is what a person has asked the next run for, in the caller's format, and Commands are the ids of the last commands
	// that were carried out.
	Asked    json.RawMessage `json:"asked,omitempty"`
	Commands []string        `json:"commands,omitempty"`
	// Pending are the steps that are still to be reported to the tracker, in the caller's format.
	Pending json.RawMessage `json:"pending,omitempty"`
	// Passed are commits that have been checked and pushed by a run that has not ended; nil: there are none.
	Passed *Passed `json:"passed,omitempty"`
	// Stopped: a person has stopped that run, or taken the issue away from it.
	Stopped bool `json:"stopped,omitempty"`
	// Mark is in the report: by it whoever has the claim finds the report of another installation. It never changes
	// while there is a record.
	Mark string `json:"mark,omitempty"`
	// Finished: the issue is a person's now. Finish sets it.
	Finished bool `json:"finished,omitempty"`
}

// Passed are the commits of a run that are still to be published.
type Passed struct {
	Run     string    `json:"run"`
	Hash    string    `json:"hash"` // of the text that was worked
	Tip     string    `json:"tip"`
	Answers time.Time `json:"answers,omitzero"` // up to when they answer what people said on the request; zero: there was none
	Asked   string    `json:"asked,omitempty"`  // the command that asked for them
}

// Spend is what agents used.
type Spend struct {
	Input      int64   `json:"input,omitempty"` // tokens
	Output     int64   `json:"output,omitempty"`
	CacheRead  int64   `json:"cache_read,omitempty"`
	CacheWrite int64   `json:"cache_write,omitempty"`
	CostUSD    float64 `json:"cost_usd,omitempty"`
	Estimated  int64   `json:"estimated,omitempty"` // of the tokens
	Unpriced   int64   `json:"unpriced,omitempty"`  // of the tokens; their cost is not known
}

// document is the message of a claim's commit. The nonce makes every commit unique: two pushes of one commit would both
// be told that they won.
type document struct {
	Version    int     `json:"version"`
	Nonce      string  `json:"nonce"`
	Generation int     `json:"generation"`
	Holder     *Holder `json:"holder,omitempty"`
	Record     Record  `json:"record,omitzero"`
}

// empty reports that the document says nothing that has to be kept. A mark alone is of no report.
func (d document) empty() bool {
	d.Record.Mark = ""
	return d.Holder == nil && reflect.ValueOf(d.Record).IsZero()
}

func (d document) encode() (string, error) {
	d.Version, d.Nonce = version, rand.Text()
	text, err := json.Marshal(d)
	return git.Printable(d.subject()) + "\n\n" + string(text), err
}

// subject says for people what the claim is: git log shows it.
func (d document) subject() string {
	r := d.Record
	switch h := d.Holder; {
	case h != nil && left(*h):
		return "Run " + h.Run + " waits to be continued"
	case h != nil:
		return "Run " + h.Run + " works until " + h.Expires.UTC().Format(time.DateTime) + " UTC, unless it renews this"
	case r.Outcome == "":
		return "Nobody works on it"
	case r.Finished:
		return "Run " + r.Run + " has finished it: " + r.Outcome
	}
	return "Run " + r.Run + " has ended: " + r.Outcome
}

// tooLarge stands for the message of a commit that is not read.
const tooLarge = "too large"

// decode reads a message: the document is the first line that begins as one.
func decode(message string) (document, error) {
	if message == tooLarge {
		return document{}, errors.New("it is too large for a claim")
	}
	line := ""
	for next := range strings.Lines(message) {
		if strings.HasPrefix(next, "{") {
			line = next
			break
		}
	}
	var d document
	if line == "" {
		return d, errors.New("it has no commit with a claim")
	}
	if err := json.Unmarshal([]byte(line), &d); err != nil {
		return document{}, err
	}
	counts := []int{d.Record.Runs, d.Record.Attempts, d.Record.Failures, d.Record.Rounds}
	switch h := d.Holder; {
	case d.Version > version:
		return document{}, ErrVersion
	case d.Version < 1 || d.Generation < 1:
		return document{}, errors.New("version and generation are required")
	case d.Generation > maxCount:
		return document{}, fmt.Errorf("its generation %d is too large", d.Generation)
	case slices.Min(counts) < 0 || slices.Max(counts) > maxCount:
		return document{}, errors.New("its numbers of runs, attempts, failures and rounds are impossible")
	case h != nil && (h.Owner == "" || h.Expires.IsZero()):
		return document{}, errors.New("owner and expires are required")
	case h != nil:
		h.Generation = d.Generation
	}
	return d, nil
}
