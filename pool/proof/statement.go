// Package proof makes and checks ralph's proofs: signed statements about how commits came about.
//
// A proof is an in-toto statement in a DSSE envelope, one line of JSON in the commit's note. [Prover] makes them, for
// pool/run. [Find] and [Judge] check them. A note is hostile: whoever may push can write one, and only what a trusted key has
// signed counts. What a signed statement says is still data, and it is cleaned before it is printed. Everything here is safe for
// concurrent use.
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
	// StatementType is in-toto's, version 1.
	StatementType = "https://in-toto.io/Statement/v1"
	// PredicateType is ralph's own. SLSA's provenance describes builds, and whoever reads it expects a builder and levels.
	PredicateType = "https://github.com/ralph-pool/ralph/proof/v1"
)

// Statement says how a commit came about.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"` // the commit, and its tree
	PredicateType string    `json:"predicateType"`
	Predicate     Predicate `json:"predicate"`
}

// Subject is what a statement is about.
type Subject struct {
	Name   string `json:"name"`
	Digest Digest `json:"digest"`
}

// Digest names an object of git.
type Digest struct {
	Commit string `json:"gitCommit,omitempty"`
	Tree   string `json:"gitTree,omitempty"`
}

// Predicate is what is said of the commit.
type Predicate struct {
	Ralph    string       `json:"ralph"` // its version
	Run      string       `json:"run"`
	Issue    Issue        `json:"issue"`
	Base     Base         `json:"base"`
	Branch   string       `json:"branch"`
	Commits  int          `json:"commits"` // of the branch, since the base
	Gate     Gate         `json:"gate"`
	Tests    *Tests       `json:"tests,omitempty"` // nil: nobody has run them without the change
	Watch    Watch        `json:"watch"`
	Sandbox  Sandbox      `json:"sandbox"`
	Agents   []Agent      `json:"agents"` // in the order in which they began; none where no agent worked in the run
	Usage    agents.Usage `json:"usage"`  // of the run, reviews included
	Review   Review       `json:"review"`
	Started  time.Time    `json:"started"`
	Finished time.Time    `json:"finished"`
}

// Issue is what was worked on.
type Issue struct {
	Key  string `json:"key"`
	URL  string `json:"url,omitempty"` // of its page on a forge
	Hash string `json:"hash"`          // of the frozen text
}

// Base is what the commits stand on.
type Base struct {
	Name   string `json:"name"`
	Commit string `json:"commit"`
}

// Gate is what the commits have passed.
type Gate struct {
	Checkout bool    `json:"checkout"` // on a clean checkout of exactly the commit; else in the agent's worktree
	Lines    []Check `json:"lines"`
}

// Check is one line of the gate.
type Check struct {
	Command  string        `json:"command"`
	ExitCode int           `json:"exit_code"`
	TimedOut bool          `json:"timed_out,omitempty"`
	Duration time.Duration `json:"duration_ns"`
	Log      *Log          `json:"log,omitempty"` // none where another run has it
}

func (c Check) passed() bool { return c.ExitCode == 0 && !c.TimedOut }

// Log is a file of the run's folder.
type Log struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Watch is what the commits did to the checks that they have passed.
type Watch struct {
	Files        int `json:"changed_files"` // that the checks depend on
	Findings     int `json:"findings"`      // that a person should look at
	TestsAdded   int `json:"tests_added"`
	TestsRemoved int `json:"tests_removed"`
	TestsSkipped int `json:"tests_skipped"`
	Canaries     int `json:"canaries"` // tests that must fail, with which the gate failed
}

// Sandbox is where agent and gate ran.
type Sandbox struct {
	Name     string `json:"name"`
	Weakness string `json:"weakness,omitempty"` // what people have to know of it
}

// Agent is one that worked.
type Agent struct {
	Name       string   `json:"name"`
	Model      string   `json:"model,omitempty"` // empty: the agent's own
	Iterations int      `json:"iterations"`
	Prompts    []string `json:"prompts_sha256"` // of each iteration
}

// Review says whether an agent that had no part in the change has looked at it before it was published.
type Review struct {
	Done     bool   `json:"done"`
	Agent    string `json:"agent,omitempty"` // and its model
	Accepted bool   `json:"accepted,omitempty"`
}

// Commit is the commit that the statement is about.
func (s Statement) Commit() string { return s.Subject[0].Digest.Commit }

// Tree is the commit's tree.
func (s Statement) Tree() string { return s.Subject[1].Digest.Tree }

// objects are what the repository knows of the commit.
type objects struct{ commit, tree, base string }

// statementOf is what a run's record says. digest is of a log by its name; nil: it is not known.
func statementOf(r journal.Record, at objects, version string, now time.Time, digest func(name string) *Log) Statement {
	f := r.Facts
	p := Predicate{
		Ralph: version, Run: r.ID, Issue: Issue{r.Key, r.URL, r.Hash}, Base: Base{r.Base, at.base}, Branch: r.Branch, Commits: r.Commits,
		Sandbox: Sandbox{r.Sandbox, r.Settings.Weaker}, Usage: f.Usage, Started: r.Started.UTC(), Finished: now.UTC(),
	}
	if !strings.HasPrefix(r.URL, "https://") && !strings.HasPrefix(r.URL, "http://") { // a path of this machine
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
			Files: len(w.Files) + w.More, Findings: len(w.Findings), TestsAdded: w.Added, TestsRemoved: w.Removed, TestsSkipped: w.Skipped,
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

// decodeStatement reads a statement exactly as ralph writes it.
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

// strictly decodes JSON that has one reading: with exactly the fields of the type, each once, and written as this program
// writes it.
func strictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("it is not what this version writes: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("it has more after its end")
	}
	again, err := json.Marshal(into)
	if err == nil && !slices.Equal(again, text) {
		err = errors.New("it is written in another way than this version writes it")
	}
	return err
}
