// Package journal is the durable record of the runs on this host.
//
// A [Record] is one run: the immutable [Run], and the [State] that its stages change. The state is stored before each
// outward effect, so that a restart continues at the stage where a crash left the run. A [Store] keeps records; package
// journal/sqlite is the one that ralph uses. Losing the store loses history only: claims, branches and labels restore
// the rest. The run's folder also holds its events as JSON lines; [ReadEvents] reads them back.
package journal

import (
	"context"
	"math"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
)

// Store keeps records. It is safe for concurrent use, by several processes too.
type Store interface {
	// Save inserts or replaces the record of a run. It is durable when it returns.
	Save(ctx context.Context, r Record) error
	// Forget deletes the record of a run that did nothing. It is no error when there is none.
	Forget(ctx context.Context, run string) error
	// Find lists records that match, oldest first.
	Find(ctx context.Context, q Query) ([]Record, error)

	// Spend notes at a time what a run of the pool has used until then: what it has more than is known was used on that
	// day. Save does the same with the record's usage. It is durable when it returns.
	Spend(ctx context.Context, pool, run string, used agents.Usage, at time.Time) error
	// Spent is what the runs of the pool have used since a day began, in UTC, and since a later one. It is cheap: no record is read.
	Spent(ctx context.Context, pool string, since, later time.Time) (all, lately agents.Usage, err error)
}

// Lookup is a pool's run with this id, or nil.
func Lookup(ctx context.Context, s Store, pool, run string) (*Record, error) {
	list, err := s.Find(ctx, Query{Pool: pool, Run: run})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// Runs are a pool's runs of an issue.
func Runs(ctx context.Context, s Store, pool, key string) (History, error) {
	return s.Find(ctx, Query{Pool: pool, Key: key, Kind: KindIssue})
}

// Day numbers the days of UTC. A store keeps what was used by day.
func Day(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

// What one run can have used at most. What is stated beyond, by an agent or a model service, counts as that: a sum of many stays a number.
const (
	MaxTokens  int64   = 1_000_000_000_000
	MaxCostUSD float64 = 1_000_000
)

// Bounded is what a store counts of used: no less than nothing, and no more than MaxTokens of each kind and MaxCostUSD.
func Bounded(used agents.Usage) agents.Usage {
	tokens := func(n int64) int64 { return min(max(n, 0), MaxTokens) }
	usd := min(max(used.CostUSD, 0), MaxCostUSD)
	if math.IsNaN(usd) {
		usd = 0
	}
	return agents.Usage{
		Input:      tokens(used.Input),
		Output:     tokens(used.Output),
		CacheRead:  tokens(used.CacheRead),
		CacheWrite: tokens(used.CacheWrite),
		CostUSD:    usd,
	}
}

// Kind is what a run works on.
type Kind string

const (
	KindIssue   Kind = "issue"   // an issue of a tracker
	KindPrompt  Kind = "prompt"  // one prompt, without a tracker
	KindCommand Kind = "command" // one command in a sandbox, without an agent
)

// Stage is a point on the way of a run. Each is stored before it begins, and each can be repeated after a crash.
type Stage string

const (
	StageClaim    Stage = "claim"
	StageBaseline Stage = "baseline" // left out of runs without a gate on clean checkouts
	StagePrepare  Stage = "prepare"
	StageWork     Stage = "work"
	StageVerify   Stage = "verify"
	StagePublish  Stage = "publish" // from here on the verdict stands
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
	for _, stage := range Stages() {
		if stage == t {
			return false
		}
		if stage == s {
			return true
		}
	}
	return false
}

// Record is one run as the journal knows it.
type Record struct {
	Run
	State
}

// Differs reports that the issue is not what the run works from.
func (r Run) Differs(i tracker.Issue) bool { return r.Hash != "" && r.Hash != i.Hash() }

// Took is how long the run had been on at a time, such as its end. A clock that was set back meanwhile makes it nothing.
func (r Run) Took(until time.Time) time.Duration { return max(0, until.Sub(r.Started)) }

// Run is what does not change while a run goes on.
type Run struct {
	ID      string `json:"run"`
	Kind    Kind   `json:"kind"`
	Pool    string `json:"pool,omitempty"` // namespace; see Query
	Key     string `json:"issue"`
	Title   string `json:"title"`
	URL     string `json:"url,omitempty"`
	Hash    string `json:"hash,omitempty"` // of the frozen issue text
	Attempt int    `json:"attempt"`        // 1 is the first
	Host    string `json:"host"`

	Branch  string    `json:"branch,omitempty"`
	Base    string    `json:"base,omitempty"` // name of what the run starts from
	Agent   string    `json:"agent,omitempty"`
	Model   string    `json:"model,omitempty"`
	Sandbox string    `json:"sandbox,omitempty"`
	Dir     string    `json:"dir"` // the run's folder: events, streams, logs
	Started time.Time `json:"started"`

	// Settings are the parts of the configuration that decide how the run ends, whatever the configuration says when a
	// later process continues it.
	Settings Settings `json:"settings"`
	// Earlier is the tally of the issue's earlier runs.
	Earlier Tally `json:"earlier,omitzero"`
	// FollowUp is why an open request got this run; empty for an issue's own.
	FollowUp string `json:"follow_up,omitempty"`
	// Answers is how far it answers what people said on the request, by the forge's clock; see tracker.FollowUp.
	Answers time.Time `json:"answers,omitzero"`
	Threads []string  `json:"threads,omitempty"` // of reviews that it answers there; see tracker.Commander
	// After is the final run before this one, when a person has started the issue again, and AfterOutcome how it ended.
	After        string  `json:"after,omitempty"`
	AfterOutcome Outcome `json:"after_outcome,omitempty"`
	// Without is a commit that the run may not continue from, and Anew why; both are empty where it continued.
	Without string `json:"without,omitempty"`
	Anew    string `json:"anew,omitempty"`
	Fresh   bool   `json:"fresh,omitempty"` // it begins at the base, whatever earlier work there is
	// Granted is what the project's caps left for the run when it began, and Reserved what other runs have to leave it; zero:
	// nothing is capped, and nothing is reserved.
	Granted  loop.Budget  `json:"granted,omitzero"`
	Reserved agents.Usage `json:"reserved,omitzero"`
	// HandedOver: the issue had the label for people when the run began, and a caller overruled that.
	HandedOver bool `json:"handed_over,omitempty"`
	// Keep is set for a worktree that stays for the next run on the branch, and Scratch for a branch that goes once its
	// commits are merged.
	Keep    bool `json:"keep,omitempty"`
	Scratch bool `json:"scratch,omitempty"`
}

// State is how far a run has come. Stages change it; it is stored before each outward effect.
type State struct {
	Stage   Stage     `json:"stage"`
	PID     int       `json:"pid,omitempty"`     // of the process that works on the run; 0: it waits for the next sweep
	Process string    `json:"process,omitempty"` // distinguishes that process from a later one with the same PID
	Ended   time.Time `json:"ended,omitzero"`    // zero while the run is on, or when ralph has died

	Tip       string   `json:"tip,omitempty"`
	Commits   int      `json:"commits"`
	Changed   Changed  `json:"changed,omitzero"`    // what the commits change
	WIP       string   `json:"wip,omitempty"`       // commit that holds uncommitted changes
	Tree      string   `json:"worktree,omitempty"`  // the worktree, when it is kept
	Unclosed  bool     `json:"unclosed,omitempty"`  // the sandbox over the worktree may still run
	Verified  Verified `json:"verified,omitzero"`   // what the gate passed for on a clean checkout
	Published string   `json:"published,omitempty"` // what publishing did, for people
	Request   Request  `json:"request,omitzero"`    // the pull or merge request, if there is one
	Proof     Proof    `json:"proof,omitzero"`      // that was made of the tip

	Facts    Facts              `json:"facts"`
	Verdict  Verdict            `json:"verdict"` // Decide(Facts), from StageVerify on
	Warnings []sandboxes.Notice `json:"warnings,omitempty"`

	Shown      bool   `json:"shown,omitempty"`      // the issue shows that the run is on
	Tries      int    `json:"tries,omitempty"`      // how often the present stage has failed
	Unreported string `json:"unreported,omitempty"` // why the report could not be written
	Unlabelled string `json:"unlabelled,omitempty"` // why the labels could not be changed
	Elsewhere  bool   `json:"elsewhere,omitempty"`  // another journal's ralph has the claim, and reports the run where it is
	Doing      string `json:"doing,omitempty"`      // what its agent or ralph did last, where the run is on another machine; hostile
}

// Changed counts what commits change.
type Changed struct {
	Files      int           `json:"files"`
	Insertions int           `json:"insertions"`     // lines
	Deletions  int           `json:"deletions"`      // lines
	List       []ChangedFile `json:"list,omitempty"` // the first of them
}

// ChangedFile counts what commits change in one file. Its path may be hostile.
type ChangedFile struct {
	Path       string `json:"path"`
	Insertions int    `json:"insertions"`
	Deletions  int    `json:"deletions"`
}

// Verified is a commit for which the gate has passed, and the base it stood on. Nothing else may be merged.
type Verified struct {
	Tip        string    `json:"tip"`
	Base       string    `json:"base"`
	Conditions string    `json:"conditions,omitempty"` // hash of what else the result depends on
	At         time.Time `json:"at,omitzero"`
}

// Proof is a signed statement about a commit, which stands in its note.
type Proof struct {
	Tip string `json:"tip"`
	Key string `json:"key"` // fingerprint of the key that signed
}

// Request is a pull or merge request.
type Request struct {
	Number int    `json:"number"`
	URL    string `json:"url"`
	Draft  bool   `json:"draft,omitempty"`
	// Merging: the forge merges it by itself once all that the project asks for has passed. Unmerged says why not, where that
	// was asked for.
	Merging  bool   `json:"merging,omitempty"`
	Unmerged string `json:"unmerged,omitempty"`
}

// Published describes what was done, for people.
func (r Request) Published() string {
	switch {
	case r.Draft:
		return "draft request " + r.URL
	case r.Merging:
		return "request " + r.URL + ", which the forge merges once its checks have passed"
	}
	return "request " + r.URL
}

// Verification is the gate on a clean checkout of exactly one commit, in a fresh sandbox.
type Verification struct {
	Tip    string       `json:"tip"`
	Base   string       `json:"base"` // name of the base the commit stands on
	Checks []loop.Check `json:"checks"`
	Setup  bool         `json:"setup,omitempty"`   // Checks are the setup's: one failed
	Rebase bool         `json:"rebased,omitempty"` // the commit was rebased before
}

// Passed reports that every check passed.
func (v Verification) Passed() bool { return loop.AllPassed(v.Checks) && !v.Setup }

// Watch is what commits did to the checks that they have passed.
type Watch struct {
	Files    []Watched `json:"files,omitempty"`    // changed files that the checks depend on
	More     int       `json:"more,omitempty"`     // such files that are not listed
	Findings []string  `json:"findings,omitempty"` // what a person should look at; quotes hostile paths

	Added      int `json:"tests_added,omitempty"`
	Removed    int `json:"tests_removed,omitempty"`
	Skipped    int `json:"tests_skipped,omitempty"` // more than before
	Focused    int `json:"tests_focused,omitempty"`
	Assertions int `json:"assertions_removed,omitempty"`

	Base      *Verification `json:"base_checks,omitempty"` // the gate with these files as they were; nil: none has changed, or Unrun
	Canaries  []Canary      `json:"canaries,omitempty"`
	Unnoticed string        `json:"unnoticed,omitempty"` // path of such a test that the gate passes over on the base, too
	Unrun     bool          `json:"unrun,omitempty"`     // the changes were only read: no gate ran for Base and Canaries
}

// Watched is a changed file that the checks depend on.
type Watched struct {
	Path    string `json:"path"`
	OldPath string `json:"old_path,omitempty"` // of a rename
	Role    string `json:"role"`
	Why     string `json:"why"`
	Test    bool   `json:"test,omitempty"` // it holds tests, and nothing else
	Added   bool   `json:"added,omitempty"`
	Removed bool   `json:"removed,omitempty"`
	Grown   bool   `json:"grown,omitempty"` // it was only added to
	// Helper says that its text, and not its name, shows that tests use it.
	Helper bool `json:"helper,omitempty"`
}

// Canary is a test that must fail, which was added to the commits: the gate failed with it on the base.
type Canary struct {
	Path    string `json:"path"`
	Noticed bool   `json:"noticed"` // the gate failed on the commits, too
}

// Disabled is the path of a canary over which the gate passed; empty: there is none.
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

// Changed reports that the checks are not what they were. Files with tests that were only added to, and that pass as they
// were, are; so are new ones, where that was not tried.
func (w *Watch) Changed() bool {
	if w == nil {
		return false
	}
	if w.More+len(w.Findings) > 0 || w.Removed+w.Skipped+w.Focused+w.Assertions > 0 || w.Base != nil && !w.Base.Passed() {
		return true
	}
	for _, f := range w.Files {
		if !f.Test || !f.Added && (!f.Grown || w.Unrun) {
			return true
		}
	}
	return false
}

// Fault is something that failed, with the cause in words.
type Fault struct {
	Kind FaultKind `json:"kind"`
	Text string    `json:"text"`
}

// Away reports a tracker or remote that cannot be used.
func (f *Fault) Away() bool { return f != nil && f.Kind == FaultAway }

// FaultKind is what a fault means for other runs.
type FaultKind string

const (
	// FaultOther concerns this run.
	FaultOther FaultKind = "other"
	// FaultAgent: the agent cannot be used as things are; every run would meet it.
	FaultAgent FaultKind = "agent"
	// FaultSandbox: no sandbox can be opened, or the machine lacks what it takes to begin; every run would meet it.
	FaultSandbox FaultKind = "sandbox"
	// FaultBase: setup or gate cannot run on the base; every run would meet it.
	FaultBase FaultKind = "base"
	// FaultAway: the tracker or the remote cannot be used; the cause is not in this run.
	FaultAway FaultKind = "away"
	// FaultLost: the worktree is gone, so that the stage cannot be repeated.
	FaultLost FaultKind = "worktree-lost"
	// FaultDirty: the kept worktree has uncommitted changes.
	FaultDirty FaultKind = "dirty"
)
