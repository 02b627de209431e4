package proof

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
)

// Tests is the result of the change's tests, which ran on its base without the rest of the change, and then on the commit.
type Tests struct {
	Proved bool    `json:"proved"` // all of Runs failed on the base and passed on the commit
	Why    string  `json:"why,omitempty"`
	Base   string  `json:"base"` // commit of the base
	Runs   []Rerun `json:"runs"`
}

// Rerun is the result of one command that runs the tests.
type Rerun struct {
	Command string   `json:"command"`
	Files   []string `json:"files"` // files with the tests; empty: the command is a line of the gate
	Base    Ran      `json:"base"`
	Commit  *Ran     `json:"commit,omitempty"` // nil: not tried
}

// Ran describes how the command ended.
type Ran struct {
	Result   journal.TestOutcome `json:"result"`
	ExitCode int                 `json:"exit_code"`
	Duration time.Duration       `json:"duration_ns"`
	Log      *Log                `json:"log,omitempty"` // nil if the log belongs to another run
}

// testsOf converts the retest in a run's record.
func testsOf(r *journal.Retest, digest func(name string) *Log) *Tests {
	ran := func(r journal.TestRun) Ran {
		out := Ran{Result: r.Outcome, ExitCode: r.ExitCode, Duration: r.Duration}
		if r.Log != "" {
			out.Log = digest(r.Log)
		}
		return out
	}
	t := &Tests{Proved: r.Proved, Why: r.Why, Base: r.Base, Runs: []Rerun{}}
	for _, run := range r.Runs {
		out := Rerun{Command: run.Command, Files: append([]string{}, run.Files...), Base: ran(run.Base)}
		if run.Tip != nil {
			tip := ran(*run.Tip)
			out.Commit = &tip
		}
		t.Runs = append(t.Runs, out)
	}
	return t
}

// proves reports whether the tests fail without the change and pass with it.
func (r Rerun) proves() bool {
	failed := journal.TestRun{Outcome: r.Base.Result}.Failed()
	return failed && r.Commit != nil && r.Commit.Result == journal.TestsPassed
}

// judge checks the claim about the tests against their runs and the commit's base; false if there is no claim.
func (t *Tests) judge(base string) (Result, bool) {
	if t == nil || !t.Proved {
		return Result{}, false
	}
	const what = "the tests of the change fail without it and pass with it"
	bad := slices.IndexFunc(t.Runs, func(r Rerun) bool { return !r.proves() })
	switch {
	case t.Base != base:
		return result(false, what, fmt.Sprintf("they ran on %.12s", t.Base)), true
	case len(t.Runs) == 0:
		return result(false, what, "none ran"), true
	case bad >= 0:
		return result(false, what, "not `"+t.Runs[bad].Command+"`"), true
	}
	return result(true, what, ""), true
}

// says summarises the tests in short lines.
func (t *Tests) says() (list []string) {
	if t == nil {
		return nil
	}
	for _, r := range t.Runs {
		text := fmt.Sprintf("  `%s`: %s without the change", r.Command, r.Base.Result)
		if r.Commit != nil {
			text += fmt.Sprintf(", %s with it", r.Commit.Result)
		}
		for _, at := range []*Ran{&r.Base, r.Commit} {
			if at != nil && at.Log != nil {
				text += fmt.Sprintf("; log %s has the SHA-256 %.16s…", at.Log.Name, at.Log.SHA256)
			}
		}
		list = append(list, text)
	}
	if len(list) > 0 {
		list = append([]string{fmt.Sprintf("tests of the change ran on %.12s without the rest of it, and on the commit:", t.Base)}, list...)
	}
	return list
}

// untested says what the tests do not show.
func (t *Tests) untested() string {
	switch {
	case t == nil:
		return "that its tests test the change: nobody has run them without it"
	case t.Proved:
		return "that its tests test all that the issue asks for"
	}
	return strings.TrimSpace("that its tests test the change: " + t.Why)
}
