package proof

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/pool/ledger"
)

// Found is a statement about a commit, signed with a trusted key.
type Found struct {
	Statement Statement
	Key       string // fingerprint of the key
}

// Find returns the newest statement about the commit that one of the keys has signed, from the lines of the commit's note;
// nil if there is none. ignored has the reasons why other lines do not count.
func Find(ctx context.Context, commit string, lines []string, keys []PublicKey) (found *Found, ignored []string) {
	why := map[string]int{}
	for _, line := range lines {
		s, key, err := open(ctx, line, keys)
		switch {
		case err != nil:
			why[err.Error()]++
		case s.Commit() != commit:
			why[fmt.Sprintf("it is about another commit, %.12s", s.Commit())]++
		case found == nil || s.Predicate.Finished.After(found.Statement.Predicate.Finished):
			found = &Found{s, key}
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		if len(ignored) == maxIgnored {
			return found, append(ignored, "and others")
		}
		if n := why[reason]; n > 1 {
			reason = fmt.Sprintf("%s (%d times)", reason, n)
		}
		ignored = append(ignored, reason)
	}
	return found, ignored
}

const maxIgnored = 5 // number of reasons that are returned

// State is the result of a check.
type State string

// The states of a check.
const (
	Holds   State = "holds"
	Fails   State = "fails"
	Unknown State = "unknown" // could not be checked, and is not required
)

// Result is the result of one check. Its texts quote the statement, which is data.
type Result struct {
	State State  `json:"state"`
	What  string `json:"what"`
	Why   string `json:"why,omitempty"` // reason if the state is not Holds
}

// Facts describes the present state of the repository and the backlog.
type Facts struct {
	Tree     string            // tree of the commit
	Base     bool              // the statement's base exists here, and the commit contains it
	Branches map[string]string // commits of the statement's branch, by the place where they were found; empty: no such branch
	Named    bool              // the branch was asked for and must exist
	Text     string            // fingerprint of the issue's title and body; empty: unreadable
	Unread   string            // why Text is empty
}

// Judge checks a statement against the present facts.
func Judge(found Found, now Facts) []Result {
	s := found.Statement
	p := s.Predicate
	results := []Result{
		result(true, "signed by "+found.Key, ""),
		result(now.Tree == s.Tree(), fmt.Sprintf("commit %.12s has the tree %.12s", s.Commit(), s.Tree()),
			fmt.Sprintf("its tree is %.12s", now.Tree)),
		result(now.Base, fmt.Sprintf("it is based on %.12s of %s", p.Base.Commit, p.Base.Name),
			"that commit is not here, or not in its history; is the clone shallow?"),
		gate(p.Gate),
		branch(s, now),
		issue(p.Issue, now),
	}
	if tests, claimed := p.Tests.judge(p.Base.Commit); claimed {
		results = append(results, tests)
	}
	return results
}

func result(holds bool, what, why string) Result {
	if holds {
		return Result{State: Holds, What: what}
	}
	return Result{State: Fails, What: what, Why: why}
}

func gate(g Gate) Result {
	for _, c := range g.Lines {
		if !c.passed() {
			return result(false, "every line of the gate passed", "not `"+c.Command+"`")
		}
	}
	if len(g.Lines) == 0 {
		return result(false, "every line of the gate passed", "there was no gate")
	}
	return result(true, "every line of the gate passed", "")
}

func branch(s Statement, now Facts) Result {
	what := "the branch " + s.Predicate.Branch + " is at the commit"
	if len(now.Branches) == 0 {
		if now.Named {
			return result(false, what, "there is no such branch")
		}
		return Result{State: Unknown, What: what, Why: "there is no such branch any more"}
	}
	for _, place := range slices.Sorted(maps.Keys(now.Branches)) {
		if at := now.Branches[place]; at != s.Commit() {
			return result(false, what, fmt.Sprintf("%s is at %.12s", place, at))
		}
	}
	return result(true, what, "")
}

func issue(i Issue, now Facts) Result {
	what := "the issue " + i.Key + " has the text that was worked on"
	if now.Text == "" {
		return Result{State: Unknown, What: what, Why: now.Unread}
	}
	return result(strings.HasPrefix(i.Hash, now.Text), what, "its text has changed")
}

// AllHold reports whether no result fails.
func AllHold(results []Result) bool {
	return !slices.ContainsFunc(results, func(r Result) bool { return r.State == Fails })
}

// Summary summarises the statement in short lines, for readers who trust the key's owner.
func (s Statement) Summary() []string {
	p := s.Predicate
	where := "in the agent's worktree"
	if p.Gate.Checkout {
		where = "on a clean checkout of exactly this commit"
	}
	says := []string{fmt.Sprintf("ralph %s ran the gate %s, in run %s, which ended %s",
		p.Ralph, where, p.Run, p.Finished.Format(time.DateTime+" MST"))}
	for _, c := range p.Gate.Lines {
		how := "it passed"
		if !c.passed() {
			how = fmt.Sprintf("it failed with exit status %d", c.ExitCode)
		}
		if c.Log != nil {
			how += fmt.Sprintf("; its log %s has the SHA-256 %.16s…", c.Log.Name, c.Log.SHA256)
		}
		says = append(says, fmt.Sprintf("  `%s`: %s", c.Command, how))
	}
	says = append(says, p.Tests.says()...)
	if len(p.Agents) == 0 {
		says = append(says, "no agent worked in the run: it published earlier commits")
	}
	for _, a := range p.Agents {
		says = append(says, strings.TrimSpace(a.Name+" "+a.Model)+fmt.Sprintf(" worked on issue %s, in %d iteration(s)",
			p.Issue.Key, a.Iterations))
	}
	if p.Usage.CostUSD > 0 {
		says = append(says, "the run cost "+ledger.Spend{Usage: p.Usage}.String())
	}
	if n := p.Usage.Unpriced; n > 0 {
		says = append(says, fmt.Sprintf("what %d tokens of the run cost is unknown", n))
	}
	says = append(says, "agent and gate ran in sandbox "+p.Sandbox.Name)
	switch {
	case p.Review.Accepted:
		says = append(says, p.Review.Agent+", which had no part in the change, reviewed it and accepts it")
	case p.Review.Done:
		says = append(says, p.Review.Agent+", which had no part in the change, reviewed it and does not accept it")
	}
	if w := p.Watch; w.Files+w.Findings > 0 {
		says = append(says, fmt.Sprintf("the commits change %d file(s) that the checks depend on, with %d finding(s): look at them",
			w.Files, w.Findings))
	}
	if p.Watch.Canaries > 0 {
		says = append(says, "the gate failed with a test that must fail")
	}
	return says
}

// Limitations lists in short lines what the proof does not show.
func (s Statement) Limitations() []string {
	p := s.Predicate
	open := []string{
		"that the machine told the truth: whoever has the key can sign anything",
		"that the change is right, or solves the issue: the gate sees what its lines check",
		p.Tests.untested(),
		"who wrote the commits: people's commits on the branch count like the agent's",
	}
	if !p.Review.Done {
		open = append(open, "that anybody has reviewed the change")
	} else {
		open = append(open, "that the review is right: the reviewer is a program, too")
	}
	if !p.Gate.Checkout {
		open = append(open, "that the gate passes on the commit: it ran among uncommitted files")
	}
	if p.Sandbox.Weakness != "" {
		open = append(open, "what the sandbox did not prevent: "+p.Sandbox.Weakness)
	}
	return open
}
