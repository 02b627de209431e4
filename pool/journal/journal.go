// Package journal defines the durable records of the runs of this host.
//
// A [Record] describes one run: the immutable [Run], and the [State] that its stages change. The state is stored before
// each outward effect, so that after a crash the run continues at the stage where it was. A [Store] stores records; package
// journal/sqlite is the one that ralph uses. Losing the store loses only history: claims, branches and labels restore the
// rest. The run's folder also has its events as JSON lines; [ReadEvents] reads them.
package journal

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
)

// Store stores records. It is safe for concurrent use, also by several processes.
type Store interface {
	// Save inserts or replaces the record of a run. The record is durable when Save returns.
	Save(ctx context.Context, r Record) error
	// Forget deletes the record of a run that did nothing. A missing record is not an error.
	Forget(ctx context.Context, run string) error
	// Find returns the matching records, oldest first.
	Find(ctx context.Context, q Query) ([]Record, error)

	// Spend records a run's total usage up to the time at. The increase since the last call counts for that day. Save does
	// the same with the record's usage. The data is durable when Spend returns.
	Spend(ctx context.Context, pool, run string, used agents.Usage, at time.Time) error
	// Spent returns the pool's usage since the beginning of two UTC days: that of since, and that of later. It is cheap,
	// because it reads no record.
	Spent(ctx context.Context, pool string, since, later time.Time) (all, lately agents.Usage, err error)
}

// Lookup returns the pool's run with this ID, or nil.
func Lookup(ctx context.Context, s Store, pool, run string) (*Record, error) {
	list, err := s.Find(ctx, Query{Pool: pool, Run: run})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// Runs returns a pool's runs of an issue.
func Runs(ctx context.Context, s Store, pool, key string) (History, error) {
	return s.Find(ctx, Query{Pool: pool, Key: key, Kind: KindIssue})
}

// Day returns the number of a UTC day. A store counts usage by day.
func Day(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

// Limits of the usage of one run. An agent or a model service may report more; it counts as the limit, so that sums do not
// overflow.
const (
	MaxTokens  int64   = 1_000_000_000_000
	MaxCostUSD float64 = 1_000_000
)

// Bounded limits usage to the range that a store counts: from zero to MaxTokens of each kind and to MaxCostUSD.
func Bounded(used agents.Usage) agents.Usage {
	tokens := func(n int64) int64 { return min(max(n, 0), MaxTokens) }
	usd := min(max(used.CostUSD, 0), MaxCostUSD)
	if math.IsNaN(usd) {
		usd = 0
	}
	return agents.Usage{
		Input: tokens(used.Input), Output: tokens(used.Output), CacheRead: tokens(used.CacheRead), CacheWrite: tokens(used.CacheWrite), CostUSD: usd,
	}
}

// Kind is what a run works on.
type Kind string

const (
	KindIssue   Kind = "issue"   // an issue of a tracker
	KindPrompt  Kind = "prompt"  // one prompt, without a tracker
	KindCommand Kind = "command" // one command in a sandbox, without an agent
)

// Stage is a step of a run. Each stage is stored before it begins, and each can be repeated after a crash.
type Stage string

const (
	StageClaim    Stage = "claim"
	StageBaseline Stage = "baseline" // skipped by runs without a gate on clean checkouts
	StagePrepare  Stage = "prepare"
	StageWork     Stage = "work"
	StageVerify   Stage = "verify"
	StagePublish  Stage = "publish" // from here on the verdict is final
	StageReport   Stage = "report"
	StageLabel    Stage = "label"
	StageRelease  Stage = "release"
	StageEnd      Stage = "end"
)

// Stages lists every stage in order.
func Stages() []Stage {
	return []Stage{
		StageClaim, StageBaseline, StagePrepare, StageWork, StageVerify, StagePublish, StageReport, StageLabel, StageRelease, StageEnd,
	}
}

// Before reports whether s comes before t.
func (s Stage) Before(t Stage) bool {
	at, other := slices.Index(Stages(), s), slices.Index(Stages(), t)
	return at >= 0 && (other < 0 || at < other)
}

// Record describes one run.
type Record struct {
	Run
	State
}

// Differs reports whether the issue's text differs from the text that the run works from.
func (r Run) Differs(i tracker.Issue) bool { return r.Hash != "" && r.Hash != i.Hash() }

// DurationUntil returns the duration of the run up to a time, such as its end. It returns 0 if the clock was set back meanwhile.
func (r Run) DurationUntil(until time.Time) time.Duration { return max(0, until.Sub(r.Started)) }

// Run is the part of a record that never changes.
type Run struct {
	ID      string `json:"run"`
	Kind    Kind   `json:"kind"`
	Pool    string `json:"pool,omitempty"` // namespace; see Query
	Key     string `json:"issue"`
	Title   string `json:"title"`
	URL     string `json:"url,omitempty"`
	Hash    string `json:"hash,omitempty"` // hash of the frozen issue text
	Attempt int    `json:"attempt"`        // 1 is the first
	Host    string `json:"host"`

	Branch  string    `json:"branch,omitempty"`
	Base    string    `json:"base,omitempty"` // name of the base
	Agent   string    `json:"agent,omitempty"`
	Model   string    `json:"model,omitempty"`
	Sandbox string    `json:"sandbox,omitempty"`
	Dir     string    `json:"dir"` // the run's folder with events, streams and logs
	Started time.Time `json:"started"`

	// Settings is the part of the configuration that determines how the run ends. It stays valid for a later process with
	// another configuration.
	Settings Settings `json:"settings"`
	// Earlier is the tally of the issue's earlier runs.
	Earlier Tally `json:"earlier,omitzero"`
	// FollowUp is the reason of a follow-up run for an open request; empty: the run is not one.
	FollowUp string `json:"follow_up,omitempty"`
	// AnswersUntil is the time up to which the run answers comments on the request, by the forge's clock; see tracker.FollowUp.
	AnswersUntil time.Time `json:"answers,omitzero"`
	Threads      []string  `json:"threads,omitempty"` // review threads that the run answers; see tracker.Commander
	// After is the final run before this one, if a person has started the issue again. AfterOutcome is its outcome.
	After        string  `json:"after,omitempty"`
	AfterOutcome Outcome `json:"after_outcome,omitempty"`
	// ExcludedCommit is a commit that the run must not continue from, and RestartReason the reason. Both are empty if the run continued.
	ExcludedCommit string `json:"without,omitempty"`
	// FormerBase is the commit of the base on which the issue's last run had built its commits; empty: unknown, or none.
	FormerBase    string `json:"former_base,omitempty"`
	RestartReason string `json:"anew,omitempty"`
	Fresh         bool   `json:"fresh,omitempty"` // start at the base, ignoring earlier work
	// Granted is what the project's caps left for the run at its start. Reserved is what other runs must leave for it.
	// Zero: no cap, or no reservation.
	Granted  loop.Budget  `json:"granted,omitzero"`
	Reserved agents.Usage `json:"reserved,omitzero"`
	// HandedOver says that the issue had the label for people when the run began, and that the caller overruled it.
	HandedOver bool `json:"handed_over,omitempty"`
	// Keep says that the worktree stays for the next run on the branch. Scratch says that the branch is deleted once its
	// commits are merged.
	Keep    bool `json:"keep,omitempty"`
	Scratch bool `json:"scratch,omitempty"`
}

// Saved is uncommitted changes of a run.
type Saved struct {
	Commit string `json:"commit"`
	Run    string `json:"run,omitempty"` // empty: unknown
}

// State is the progress of a run. Stages change it; it is stored before each outward effect.
type State struct {
	Stage   Stage     `json:"stage"`
	PID     int       `json:"pid,omitempty"`     // process that works on the run; 0: the run waits for the next sweep
	Process string    `json:"process,omitempty"` // distinguishes that process from a later one with the same PID
	Ended   time.Time `json:"ended,omitzero"`    // zero while the run is in progress, or after ralph has died

	Tip           string   `json:"tip,omitempty"`
	BuiltOn       string   `json:"built_on,omitempty"` // commit of the base on which the commits are built
	Commits       int      `json:"commits"`
	Changed       Changed  `json:"changed,omitzero"`    // changes made by the commits
	WIP           string   `json:"wip,omitempty"`       // commit with the uncommitted changes
	Saved         Saved    `json:"saved,omitzero"`      // without WIP: what an earlier run has left
	Tree          string   `json:"worktree,omitempty"`  // path of the worktree, if it is kept
	SandboxMayRun bool     `json:"unclosed,omitempty"`  // the sandbox of the worktree may still run
	Verified      Verified `json:"verified,omitzero"`   // the commit for which the gate passed on a clean checkout
	Published     string   `json:"published,omitempty"` // result of publishing, for people
	Request       Request  `json:"request,omitzero"`    // the pull or merge request, if any
	Proof         Proof    `json:"proof,omitzero"`      // proof of the tip, if any

	Facts    Facts              `json:"facts"`
	Verdict  Verdict            `json:"verdict"` // of pool/internal/decide, from StageVerify on
	Warnings []sandboxes.Notice `json:"warnings,omitempty"`

	Shown      bool   `json:"shown,omitempty"`      // the issue shows that the run is in progress
	Tries      int    `json:"tries,omitempty"`      // failures of the present stage
	Unreported string `json:"unreported,omitempty"` // why the report could not be written
	Unlabelled string `json:"unlabelled,omitempty"` // why the labels could not be changed
	Elsewhere  bool   `json:"elsewhere,omitempty"`  // a ralph with another journal has the claim, and reports the run there
	Doing      string `json:"doing,omitempty"`      // last action of the agent or of ralph, if the run is on another machine; hostile
}

// Warn adds the warnings that the state lacks: a sweep may repeat those of an earlier one.
func (s *State) Warn(more ...sandboxes.Notice) {
	for _, n := range more {
		if !slices.Contains(s.Warnings, n) {
			s.Warnings = append(s.Warnings, n)
		}
	}
}

// Changed is the statistics of changes.
type Changed struct {
	Files      int           `json:"files"`
	Insertions int           `json:"insertions"`     // lines
	Deletions  int           `json:"deletions"`      // lines
	List       []ChangedFile `json:"list,omitempty"` // the first files
}

// ChangedFile is the statistics of one changed file. Its path may be hostile.
type ChangedFile struct {
	Path       string `json:"path"`
	Insertions int    `json:"insertions"`
	Deletions  int    `json:"deletions"`
}

// Verified is a commit for which the gate has passed, and its base. No other commit may be merged.
type Verified struct {
	Tip        string    `json:"tip"`
	Base       string    `json:"base"`
	Conditions string    `json:"conditions,omitempty"` // hash of everything else that affects the result
	At         time.Time `json:"at,omitzero"`
}

// Proof is a signed statement about a commit, stored in the commit's note.
type Proof struct {
	Tip string `json:"tip"`
	Key string `json:"key"` // fingerprint of the signing key
}

// Request is a pull or merge request.
type Request struct {
	Number int    `json:"number"`
	URL    string `json:"url"`
	Draft  bool   `json:"draft,omitempty"`
	// Merging says that the forge merges the request once all its conditions are met. Unmerged is the reason if that was
	// asked for and failed.
	Merging  bool   `json:"merging,omitempty"`
	Unmerged string `json:"unmerged,omitempty"`
}

// Published describes the request for people.
func (r Request) Published() string {
	switch {
	case r.Draft:
		return "draft request " + r.URL
	case r.Merging:
		return "request " + r.URL + ", which the forge merges once its checks have passed"
	}
	return "request " + r.URL
}

// Verification is the result of the gate on a clean checkout of one commit, in a new sandbox.
type Verification struct {
	Tip    string       `json:"tip"`
	Base   string       `json:"base"` // name of the commit's base
	Checks []loop.Check `json:"checks"`
	Setup  bool         `json:"setup,omitempty"`   // Checks are those of the setup, one of which failed
	Rebase bool         `json:"rebased,omitempty"` // the commit was rebased first
}

// Passed reports whether every check passed.
func (v Verification) Passed() bool { return loop.AllPassed(v.Checks) && !v.Setup }

// Watch lists the changes that commits make to the checks that they have passed.
type Watch struct {
	Files         []Watched `json:"files,omitempty"`    // changed files that the checks depend on
	UnlistedFiles int       `json:"more,omitempty"`     // number of such files that are not listed
	Findings      []string  `json:"findings,omitempty"` // findings for a person; they quote hostile paths

	Added      int `json:"tests_added,omitempty"`
	Removed    int `json:"tests_removed,omitempty"`
	Skipped    int `json:"tests_skipped,omitempty"` // increase of skipped tests
	Focused    int `json:"tests_focused,omitempty"`
	Assertions int `json:"assertions_removed,omitempty"`

	Base       *Verification `json:"base_checks,omitempty"` // the gate with the earlier content of these files; nil: no such change, or GateNotRun
	Canaries   []Canary      `json:"canaries,omitempty"`
	Unnoticed  string        `json:"unnoticed,omitempty"` // path of a canary that the gate also ignores on the base
	GateNotRun bool          `json:"unrun,omitempty"`     // the changes were only read: no gate ran for Base and Canaries
}

// Watched is a changed file that the checks depend on.
type Watched struct {
	Path      string `json:"path"`
	OldPath   string `json:"old_path,omitempty"` // earlier path of a renamed file
	Role      string `json:"role"`
	Why       string `json:"why"`
	Test      bool   `json:"test,omitempty"` // the file has only tests
	Added     bool   `json:"added,omitempty"`
	Removed   bool   `json:"removed,omitempty"`
	OnlyAdded bool   `json:"grown,omitempty"` // content was only added
	// Helper says that the file's text, not its name, shows that tests use it.
	Helper bool `json:"helper,omitempty"`
}

// Canary is a test that must fail, added to the commits. With it, the gate failed on the base.
type Canary struct {
	Path    string `json:"path"`
	Noticed bool   `json:"noticed"` // the gate failed on the commits, too
}

// Disabled returns the path of a canary that the gate ignored, or "".
func (w *Watch) Disabled() string {
	if w == nil {
		return ""
	}
	for _, c := range w.Canaries {
		if !c.Noticed {
			return c.Path
		}
	}
	return ""
}

// Changed reports whether the checks have changed. New test files do not count, nor do test files with additions only if
// the gate also ran with their earlier content and passed.
func (w *Watch) Changed() bool {
	if w == nil {
		return false
	}
	if w.UnlistedFiles+len(w.Findings) > 0 || w.Removed+w.Skipped+w.Focused+w.Assertions > 0 || w.Base != nil && !w.Base.Passed() {
		return true
	}
	for _, f := range w.Files {
		if !f.Test || !f.Added && (!f.OnlyAdded || w.GateNotRun) {
			return true
		}
	}
	return false
}

// Fault is a failure with its cause in words.
type Fault struct {
	Kind FaultKind `json:"kind"`
	Text string    `json:"text"`
}

// IsUnavailable reports whether the fault is a tracker or remote that cannot be used.
func (f *Fault) IsUnavailable() bool { return f != nil && f.Kind == FaultUnavailable }

// FaultKind says what a fault means for other runs.
type FaultKind string

const (
	// FaultOther affects only this run.
	FaultOther FaultKind = "other"
	// FaultAgent means that the agent cannot be used with the present setup. It affects every run.
	FaultAgent FaultKind = "agent"
	// FaultSandbox means that no sandbox can be opened, or that the machine lacks resources for a run. It affects every
	// run.
	FaultSandbox FaultKind = "sandbox"
	// FaultBase means that setup or gate cannot run on the base. It affects every run.
	FaultBase FaultKind = "base"
	// FaultUnavailable means that the tracker or the remote cannot be used. The run is not the cause.
	FaultUnavailable FaultKind = "away"
	// FaultLost means that the worktree is gone, so the stage cannot be repeated.
	FaultLost FaultKind = "worktree-lost"
	// FaultUndone means that a commit of a person has undone the merge.
	FaultUndone FaultKind = "merge-undone"
	// FaultDirty means that the kept worktree has uncommitted changes.
	FaultDirty FaultKind = "dirty"
)

// SaidDone reports whether the agent itself ended its work, and no limit, failure or stop did. A question is no end.
func (r Record) SaidDone() bool {
	f := r.Facts
	return f.End == loop.EndDone || f.End == loop.EndNoChange || f.SignalTip != "" && f.SignalTip == r.Tip && r.WIP == ""
}
