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

// version is the format version of the document. An older ralph refuses a newer document.
const version = 1

// maxCount is larger than any real count. Anybody with push access can write a claim, and a forged count must not overflow.
const maxCount = 1 << 40

// Holder identifies the holder of a claim.
type Holder struct {
	Owner      string    `json:"owner"` // unique ID of the ralph process's sweep or run
	Host       string    `json:"host"`
	PID        int       `json:"pid"`     // 0: no process; the run waits to be continued
	Started    string    `json:"started"` // start time of that process; detects a reused PID
	Run        string    `json:"run"`
	Generation int       `json:"-"` // fencing number; grows with every take-over
	Expires    time.Time `json:"expires"`
	// ExpiresUptime is the expiry on the host's own clock, which nobody can set and which stands still while the machine sleeps.
	ExpiresUptime time.Duration `json:"until,omitempty"`
	Hash          string        `json:"hash"`            // hash of the frozen issue
	StatePath     string        `json:"place,omitempty"` // path of the run's state on the host
	Mark          string        `json:"-"`               // mark for the record, unless it has one
}

// Record describes the runs so far, on all machines. All limits are checked against it.
type Record struct {
	Run      string    `json:"run,omitempty"`     // the latest run
	Host     string    `json:"host,omitempty"`    // host of that run, as people know it
	Outcome  string    `json:"outcome,omitempty"` // outcome of that run
	Hash     string    `json:"hash,omitempty"`    // hash of the text in that run
	Tip      string    `json:"tip,omitempty"`
	At       time.Time `json:"at,omitzero"`        // time of the decision about the outcome, by that machine's clock
	Runs     int       `json:"runs,omitempty"`     // number of runs that have ended
	Attempts int       `json:"attempts,omitempty"` // attempts used up since a person last took over
	Failures int       `json:"failures,omitempty"` // failures, including those that used up no attempt
	Rounds   int       `json:"rounds,omitempty"`   // number of follow-up rounds
	Spend    Spend     `json:"spend,omitzero"`     // use since a person last took over, including the present run
	// Open is the part of Spend that belongs to runs without an end, by run.
	Open    map[string]Spend `json:"open,omitempty"`
	RetryAt time.Time        `json:"retry_at,omitzero"`
	// Parked lists the unavailable agents, in the caller's format.
	Parked json.RawMessage `json:"parked,omitempty"`
	// Asked is a person's request to the next run, in the caller's format. Commands lists the IDs of the last commands that
	// were carried out.
	Asked    json.RawMessage `json:"asked,omitempty"`
	Commands []string        `json:"commands,omitempty"`
	// Pending lists the steps that the tracker still has to be told about, in the caller's format.
	Pending json.RawMessage `json:"pending,omitempty"`
	// Passed describes commits that a run without an end has checked and pushed; nil if there are none.
	Passed *PushedCommits `json:"passed,omitempty"`
	// Stopped says that a person has stopped that run, or has taken the issue away from it.
	Stopped bool `json:"stopped,omitempty"`
	// Mark is a text in the report. By it, the claim's holder finds the report that another installation wrote. It
	// never changes while the record exists.
	Mark string `json:"mark,omitempty"`
	// Finished says that the issue now belongs to a person. Finish sets it.
	Finished bool `json:"finished,omitempty"`
}

// PushedCommits describes commits of a run that still have to be published.
type PushedCommits struct {
	Run     string    `json:"run"`
	Hash    string    `json:"hash"` // hash of the text in that run
	Tip     string    `json:"tip"`
	Answers time.Time `json:"answers,omitzero"` // time of the latest comment on the request that the commits answer; zero: none
	Asked   string    `json:"asked,omitempty"`  // the command that asked for the commits
}

// Spend is the use of models by agents.
type Spend struct {
	Input      int64   `json:"input,omitempty"` // tokens, like the next three
	Output     int64   `json:"output,omitempty"`
	CacheRead  int64   `json:"cache_read,omitempty"`
	CacheWrite int64   `json:"cache_write,omitempty"`
	CostUSD    float64 `json:"cost_usd,omitempty"`
	Estimated  int64   `json:"estimated,omitempty"` // number of those tokens that were estimated
	Unpriced   int64   `json:"unpriced,omitempty"`  // number of those tokens whose cost is unknown
}

// document is the message of a claim's commit. The nonce makes every commit unique: if two claimants pushed the same
// commit, both would be told that they won.
type document struct {
	Version    int     `json:"version"`
	Nonce      string  `json:"nonce"`
	Generation int     `json:"generation"`
	Holder     *Holder `json:"holder,omitempty"`
	Record     Record  `json:"record,omitzero"`
}

// empty reports whether the document has nothing to keep. A mark alone belongs to no report.
func (d document) empty() bool {
	d.Record.Mark = ""
	return d.Holder == nil && reflect.ValueOf(d.Record).IsZero()
}

func (d document) encode() (string, error) {
	d.Version, d.Nonce = version, rand.Text()
	text, err := json.Marshal(d)
	return git.Printable(d.subject()) + "\n\n" + string(text), err
}

// subject describes the claim for people; git log shows it.
func (d document) subject() string {
	r := d.Record
	switch h := d.Holder; {
	case h != nil && hasNoProcess(*h):
		return "Run " + h.Run + " is deferred, and continues later"
	case h != nil:
		return "Run " + h.Run + " holds this claim until " + h.Expires.UTC().Format(time.DateTime) + " UTC, unless it renews it"
	case r.Outcome == "":
		return "Nobody holds this claim"
	case r.Finished:
		return "Run " + r.Run + " has finished the issue: " + r.Outcome
	}
	return "Run " + r.Run + " has ended: " + r.Outcome
}

// tooLarge stands in for the message of a commit that is too large to read.
const tooLarge = "too large"

// decode parses a message. The document is the first line that begins with a brace.
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
		return d, errors.New("there is no commit with a claim")
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
		return document{}, errors.New("its counts of runs, attempts, failures and rounds are not valid")
	case h != nil && (h.Owner == "" || h.Expires.IsZero()):
		return document{}, errors.New("owner and expires are required")
	case h != nil:
		h.Generation = d.Generation
	}
	return d, nil
}
