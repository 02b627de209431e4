// Package proof makes and checks ralph's proofs: signed statements about how commits came about.
//
// A proof is an in-toto statement in a DSSE envelope, one line of JSON in the commit's note. [Prover] makes proofs, for
// pool/run. [Find] and [Judge] check them. Notes are hostile: anybody with push access can write one, and only statements
// signed with a trusted key count. Signed statements are still data, and are cleaned before printing. The package is safe
// for concurrent use.
package proof

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree/git"
)

const (
	// StatementType is the type of in-toto statements, version 1.
	StatementType = "https://in-toto.io/Statement/v1"
	// PredicateType is ralph's own type. SLSA's provenance describes builds, and its readers expect a builder and levels.
	PredicateType = "https://github.com/ralph-pool/ralph/proof/v1"
)

// Statement describes how a commit came about.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"` // the commit, and its tree
	PredicateType string    `json:"predicateType"`
	Predicate     Predicate `json:"predicate"`
}

// Subject is an object that a statement is about.
type Subject struct {
	Name   string `json:"name"`
	Digest Digest `json:"digest"`
}

// Digest names a git object.
type Digest struct {
	Commit string `json:"gitCommit,omitempty"`
	Tree   string `json:"gitTree,omitempty"`
}

// Predicate is the content of a statement.
type Predicate struct {
	Ralph    string       `json:"ralph"` // version of ralph
	Run      string       `json:"run"`
	Issue    Issue        `json:"issue"`
	Base     Base         `json:"base"`
	Branch   string       `json:"branch"`
	Commits  int          `json:"commits"` // number of commits on the branch since the base
	Gate     Gate         `json:"gate"`
	Tests    *Tests       `json:"tests,omitempty"` // nil: the tests were not run without the change
	Watch    Watch        `json:"watch"`
	Sandbox  Sandbox      `json:"sandbox"`
	Agents   []Agent      `json:"agents"` // in the order of their start; empty if no agent worked in the run
	Usage    agents.Usage `json:"usage"`  // usage of the run, including reviews
	Review   Review       `json:"review"`
	Started  time.Time    `json:"started"`
	Finished time.Time    `json:"finished"`
}

// Issue identifies the issue.
type Issue struct {
	Key  string `json:"key"`
	URL  string `json:"url,omitempty"` // URL of the issue on a forge
	Hash string `json:"hash"`          // hash of the frozen text
}

// Base is the base of the commits.
type Base struct {
	Name   string `json:"name"`
	Commit string `json:"commit"`
}

// Gate is the result of the gate.
type Gate struct {
	Checkout bool    `json:"checkout"` // on a clean checkout of the commit; otherwise in the agent's worktree
	Lines    []Check `json:"lines"`
}

// Check is the result of one line of the gate.
type Check struct {
	Command  string        `json:"command"`
	ExitCode int           `json:"exit_code"`
	TimedOut bool          `json:"timed_out,omitempty"`
	Duration time.Duration `json:"duration_ns"`
	Log      *Log          `json:"log,omitempty"` // nil if the log belongs to another run
}

func (c Check) passed() bool { return c.ExitCode == 0 && !c.TimedOut }

// Log identifies a file of the run's folder.
type Log struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Watch counts the changes of the commits to their own checks.
type Watch struct {
	Files        int `json:"changed_files"` // files that the checks depend on
	Findings     int `json:"findings"`      // findings for a person
	TestsAdded   int `json:"tests_added"`
	TestsRemoved int `json:"tests_removed"`
	TestsSkipped int `json:"tests_skipped"`
	Canaries     int `json:"canaries"` // tests that must fail, with which the gate failed
}

// Sandbox is the sandbox of agent and gate.
type Sandbox struct {
	Name     string `json:"name"`
	Weakness string `json:"weakness,omitempty"` // a weakness that people have to know
}

// Agent is an agent that worked in the run.
type Agent struct {
	Name       string   `json:"name"`
	Model      string   `json:"model,omitempty"` // empty: the agent's default
	Iterations int      `json:"iterations"`
	Prompts    []string `json:"prompts_sha256"` // for each iteration
}

// Review says whether an agent without a part in the change reviewed it before it was published.
type Review struct {
	Done     bool   `json:"done"`
	Agent    string `json:"agent,omitempty"` // the agent and its model
	Accepted bool   `json:"accepted,omitempty"`
}

// Commit returns the commit that the statement is about.
func (s Statement) Commit() string { return s.Subject[0].Digest.Commit }

// Tree returns the commit's tree.
func (s Statement) Tree() string { return s.Subject[1].Digest.Tree }

// objects are the commit, its tree and its base, as read from the repository.
type objects struct{ commit, tree, base string }

// statementOf makes the statement about a run. digest returns the digest of a log by its name, or nil.
func statementOf(r journal.Record, at objects, version string, now time.Time, digest func(name string) *Log) Statement {
	f := r.Facts
	p := Predicate{
		Ralph: version, Run: r.ID, Issue: Issue{r.Key, r.URL, r.Hash}, Base: Base{r.Base, at.base}, Branch: r.Branch, Commits: r.Commits,
		Sandbox: Sandbox{r.Sandbox, r.Settings.Weaker}, Usage: f.Usage, Started: r.Started.UTC(), Finished: now.UTC(),
	}
	if !strings.HasPrefix(r.URL, "https://") && !strings.HasPrefix(r.URL, "http://") { // otherwise it is a path on this machine
		p.Issue.URL = ""
	}
	checks, iteration := f.Gate, len(f.Iterations)
	if f.Verify != nil && f.Verify.Tip == r.Tip {
		checks, iteration, p.Gate.Checkout = f.Verify.Checks, 0, true
	}
	p.Gate.Lines = []Check{}
	for i, c := range checks {
		p.Gate.Lines = append(p.Gate.Lines, Check{
			Command: c.Command, ExitCode: c.ExitCode, TimedOut: c.TimedOut, Duration: c.Duration, Log: digest(loop.GateLog(iteration, i)),
		})
	}
	if t := f.Retest; t != nil && t.Tip == r.Tip {
		p.Tests = testsOf(t, digest)
	}
	if w := f.Watch; w != nil {
		p.Watch = Watch{
			Files: len(w.Files) + w.UnlistedFiles, Findings: len(w.Findings), TestsAdded: w.Added, TestsRemoved: w.Removed, TestsSkipped: w.Skipped,
		}
		for _, c := range w.Canaries {
			if c.Noticed {
				p.Watch.Canaries++
			}
		}
	}
	p.Agents = []Agent{}
	for _, it := range f.Iterations {
		at := slices.IndexFunc(p.Agents, func(a Agent) bool { return a.Name == it.Agent && a.Model == it.Model })
		if at < 0 {
			at, p.Agents = len(p.Agents), append(p.Agents, Agent{Name: it.Agent, Model: it.Model})
		}
		a := &p.Agents[at]
		a.Iterations, a.Prompts = a.Iterations+1, append(a.Prompts, it.Prompt)
	}
	if v := f.Review; v != nil && v.Failed == "" && v.Tip == r.Tip {
		p.Review = Review{Done: true, Agent: v.Agent, Accepted: v.Accepted}
	}
	return Statement{
		Type: StatementType, PredicateType: PredicateType, Predicate: p,
		Subject: []Subject{{Name: r.Branch, Digest: Digest{Commit: at.commit}}, {Name: "tree", Digest: Digest{Tree: at.tree}}},
	}
}

// decodeStatement parses a statement. It only accepts the form in which ralph writes it.
func decodeStatement(text []byte) (Statement, error) {
	var s Statement
	if err := strictly(text, &s); err != nil {
		return Statement{}, err
	}
	switch {
	case s.Type != StatementType || s.PredicateType != PredicateType:
		return Statement{}, errors.New("it is a statement of another kind")
	case len(s.Subject) != 2 || !git.IsObject(s.Commit()) || !git.IsObject(s.Tree()) || !git.IsObject(s.Predicate.Base.Commit):
		return Statement{}, errors.New("it names no commit, tree and base")
	}
	return s, nil
}

// strictly parses JSON with a single reading: exactly the fields of the type, each once, in the form in which this program
// writes them.
func strictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("it is not what this version writes: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("it has more data after its end")
	}
	again, err := json.Marshal(into)
	if err == nil && !slices.Equal(again, text) {
		err = errors.New("it does not have the form that this version writes")
	}
	return err
}
