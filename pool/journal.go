package pool

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	_ "modernc.org/sqlite" // the journal's engine
)

// Journal is the durable record of the runs on this host. Every step of a run is written before it is taken. Losing it
// costs history only: claims, branches and labels rebuild the rest. Several processes may use one journal; it is safe
// for concurrent use.
type Journal struct {
	db     *sql.DB
	saving *sql.Stmt // what is done at every step of every run
}

// Record is one run as the journal knows it.
type Record struct {
	Run     string `json:"run"`
	Key     string `json:"issue"`
	Title   string `json:"title"`
	URL     string `json:"url,omitempty"`
	Attempt int    `json:"attempt"` // 1 is the first
	Hash    string `json:"hash"`    // of the frozen issue

	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Process string `json:"process"` // tells the process from a later one with the same PID

	Step    Step      `json:"step"`
	Branch  string    `json:"branch,omitempty"`
	Base    string    `json:"base,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	Model   string    `json:"model,omitempty"`
	Sandbox string    `json:"sandbox,omitempty"`
	Dir     string    `json:"dir"` // the run's folder: events, streams, logs
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"` // zero while it is on, or if ralph has died

	Verdict Verdict `json:"verdict"`
}

// Verdict is what a run came to. It is complete from StepPublish on.
type Verdict struct {
	Outcome    Outcome          `json:"outcome,omitempty"`
	Reason     string           `json:"reason,omitempty"` // one line for people
	Tip        string           `json:"tip,omitempty"`
	Commits    int              `json:"commits"`
	WIP        string           `json:"wip,omitempty"`
	Published  string           `json:"published,omitempty"` // what publishing did, for people
	Request    Request          `json:"request,omitzero"`    // the pull or merge request, if there is one
	FollowUp   string           `json:"follow_up,omitempty"` // why an open request got this run; empty for an issue's own
	Iterations []loop.Iteration `json:"iterations,omitempty"`
	Gate       []loop.Check     `json:"gate,omitempty"`
	GateRan    bool             `json:"gate_ran,omitempty"`
	Gated      Gated            `json:"gated,omitzero"`    // what the gate has passed for
	Message    string           `json:"message,omitempty"` // the agent's last words; hostile
	Question   string           `json:"question,omitempty"`
	Warnings   []string         `json:"warnings,omitempty"`
	Usage      agents.Usage     `json:"usage"`
	Final      bool             `json:"final"`                 // a person's turn
	Counted    bool             `json:"counted"`               // used up an attempt
	RetryAt    time.Time        `json:"retry_at,omitzero"`     // not before
	Tries      int              `json:"tries,omitempty"`       // how often the step that the run stands at has failed
	Terms      *Terms           `json:"terms,omitempty"`       // what the run was to be published by; set before it is
	Unreported string           `json:"unreported,omitempty"`  // why the report could not be written
	Unlabelled string           `json:"unlabelled,omitempty"`  // why the labels could not be changed
	FilledDisk bool             `json:"filled_disk,omitempty"` // the run was ended for what it wrote
}

// Gated is a commit for which the gate has passed, and the base it stood on then. Nothing else may be merged.
type Gated struct {
	Tip  string `json:"tip"`
	Base string `json:"base"`
}

// Terms are what of the configuration the end of a run goes by, however it is configured when it is taken up again.
type Terms struct {
	Publish Publish  `json:"publish"`
	Require []string `json:"require"`
	Wall    string   `json:"wall,omitempty"` // what people have to know of the sandbox
}

// Request is a pull or merge request.
type Request struct {
	Number int    `json:"number"`
	URL    string `json:"url"`
	Draft  bool   `json:"draft,omitempty"`
}

const schema = `
CREATE TABLE IF NOT EXISTS runs (
	run TEXT PRIMARY KEY, key TEXT NOT NULL, title TEXT NOT NULL, url TEXT NOT NULL, attempt INTEGER NOT NULL,
	hash TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL, process TEXT NOT NULL, step TEXT NOT NULL,
	branch TEXT NOT NULL, base TEXT NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL, sandbox TEXT NOT NULL,
	dir TEXT NOT NULL, started INTEGER NOT NULL, ended INTEGER, verdict TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS runs_by_key ON runs (key, started);
CREATE INDEX IF NOT EXISTS runs_open ON runs (run) WHERE ended IS NULL;
`

// schemaVersion is raised with every change of schema; an older ralph refuses a newer journal.
const schemaVersion = 1

// OpenJournal opens or makes the journal at path.
func OpenJournal(ctx context.Context, path string) (*Journal, error) {
	pragmas := url.Values{
		"_pragma": {"busy_timeout(15000)", "journal_mode(WAL)", "synchronous(NORMAL)"},
		"_txlock": {"immediate"},
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: pragmas.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", path, err)
	}
	db.SetMaxOpenConns(1) // SQLite writes one at a time; waiting here is cheaper than waiting there
	j := &Journal{db: db}
	if err := j.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal %s: %w; if it is damaged, move it away: it holds history only", path, err), db.Close())
	}
	j.saving, err = db.PrepareContext(ctx,
		"UPDATE runs SET step = ?, base = ?, hash = ?, title = ?, attempt = ?, verdict = ?, ended = ?, pid = ? WHERE run = ?")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal %s: %w", path, err), db.Close())
	}
	return j, nil
}

func (j *Journal) migrate(ctx context.Context) error {
	var version int
	if err := j.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	switch {
	case version == schemaVersion:
		return nil
	case version > schemaVersion:
		return fmt.Errorf("it was written by a newer ralph (version %d, this one knows %d); use that ralph, or move the file away",
			version, schemaVersion)
	}
	if _, err := j.db.ExecContext(ctx, schema); err != nil {
		return err
	}
	_, err := j.db.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", schemaVersion))
	return err
}

// Close closes the journal.
func (j *Journal) Close() error { return j.db.Close() }

// begin writes a new run.
func (j *Journal) begin(ctx context.Context, r *Record) error {
	_, err := j.db.ExecContext(ctx, `INSERT INTO runs
		(run, key, title, url, attempt, hash, host, pid, process, step, branch, base, agent, model, sandbox, dir, started, verdict)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,'{}')`,
		r.Run, r.Key, r.Title, r.URL, r.Attempt, r.Hash, r.Host, r.PID, r.Process, r.Step, r.Branch, r.Base, r.Agent,
		r.Model, r.Sandbox, r.Dir, r.Started.UnixNano())
	if err != nil {
		return fmt.Errorf("journal run %s: %w", r.Run, err)
	}
	return nil
}

// save writes what may change in a run: its step, base, hash, title and verdict, whose it is, and
// whether it has ended.
func (j *Journal) save(ctx context.Context, r *Record) error {
	verdict, err := json.Marshal(r.Verdict)
	if err != nil {
		return fmt.Errorf("journal run %s: %w", r.Run, err)
	}
	_, err = j.saving.ExecContext(ctx, r.Step, r.Base, r.Hash, r.Title, r.Attempt, string(verdict), unixOrNull(r.Ended), r.PID, r.Run)
	if err != nil {
		return fmt.Errorf("journal run %s: %w", r.Run, err)
	}
	return nil
}

// forget deletes a run that did nothing, such as one whose claim somebody else holds.
func (j *Journal) forget(ctx context.Context, run string) error {
	if _, err := j.db.ExecContext(ctx, "DELETE FROM runs WHERE run = ?", run); err != nil {
		return fmt.Errorf("journal run %s: %w", run, err)
	}
	return nil
}

const columns = `run, key, title, url, attempt, hash, host, pid, process, step, branch, base, agent, model, sandbox,
	dir, started, ended, verdict`

// Runs lists the runs of an issue, or of all issues for an empty key, oldest first.
func (j *Journal) Runs(ctx context.Context, key string) ([]Record, error) {
	if key == "" {
		return j.query(ctx, "SELECT "+columns+" FROM runs ORDER BY started, run")
	}
	return j.query(ctx, "SELECT "+columns+" FROM runs WHERE key = ? ORDER BY started, run", key)
}

// has reports whether this host has the run on record.
func (j *Journal) has(ctx context.Context, run string) (bool, error) {
	var n int
	if err := j.db.QueryRowContext(ctx, "SELECT count(*) FROM runs WHERE run = ?", run).Scan(&n); err != nil {
		return false, fmt.Errorf("read journal: %w", err)
	}
	return n > 0, nil
}

// unended reports whether this host has the run on record, and not its end.
func (j *Journal) unended(ctx context.Context, run string) (bool, error) {
	var n int
	if err := j.db.QueryRowContext(ctx, "SELECT count(*) FROM runs WHERE run = ? AND ended IS NULL", run).Scan(&n); err != nil {
		return false, fmt.Errorf("read journal: %w", err)
	}
	return n > 0, nil
}

// Open lists the runs that have not ended, of live processes and of dead ones.
func (j *Journal) Open(ctx context.Context) ([]Record, error) {
	return j.query(ctx, "SELECT "+columns+" FROM runs WHERE ended IS NULL ORDER BY started, run")
}

// Last maps every issue's key to its latest ended run that was not forgotten.
func (j *Journal) Last(ctx context.Context) (map[string]Record, error) {
	runs, err := j.query(ctx, "SELECT "+columns+` FROM runs AS r WHERE ended IS NOT NULL AND NOT EXISTS
		(SELECT 1 FROM runs WHERE key = r.key AND ended IS NOT NULL AND (started, run) > (r.started, r.run))`)
	if err != nil {
		return nil, err
	}
	last := make(map[string]Record, len(runs))
	for _, r := range runs {
		last[r.Key] = r
	}
	return last, nil
}

func (j *Journal) query(ctx context.Context, query string, args ...any) ([]Record, error) {
	rows, err := j.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	defer rows.Close()
	var out []Record
	for rows.Next() {
		var r Record
		var started int64
		var ended sql.NullInt64
		var verdict string
		if err := rows.Scan(&r.Run, &r.Key, &r.Title, &r.URL, &r.Attempt, &r.Hash, &r.Host, &r.PID, &r.Process, &r.Step,
			&r.Branch, &r.Base, &r.Agent, &r.Model, &r.Sandbox, &r.Dir, &started, &ended, &verdict); err != nil {
			return nil, fmt.Errorf("read journal: %w", err)
		}
		if err := json.Unmarshal([]byte(verdict), &r.Verdict); err != nil {
			return nil, fmt.Errorf("read journal: run %s: %w", r.Run, err)
		}
		r.Started = time.Unix(0, started)
		if ended.Valid {
			r.Ended = time.Unix(0, ended.Int64)
		}
		out = append(out, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	return out, nil
}

func unixOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixNano()
}
