package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/workspace/homes"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/worktree"
)

// BaselineError means that the gate cannot run on the base, so that no agent could make it pass. The cause is the set-up, and
// every issue would meet it.
type BaselineError struct {
	Base    string // name of the base
	Check   loop.Check
	Setup   bool               // Check is a command of setup
	Refused []sandboxes.Notice // connections that were refused meanwhile
}

// what names the kind of check that cannot run.
func (e *BaselineError) what() string {
	if e.Setup {
		return "setup"
	}
	return "gate"
}

// waitedError is a BaselineError for a run that was in progress when another found it.
type waitedError struct {
	*BaselineError
	foundBy string // key of the run that found it
}

func (e *waitedError) Error() string {
	return fmt.Sprintf("%s cannot run on %s, before any change; the log of %s has its output", e.what(), e.Base, e.foundBy)
}

func (e *waitedError) Unwrap() error { return e.BaselineError }

// BaselineErrorIn returns the BaselineError in err, which has all details; without one it returns err.
func BaselineErrorIn(err error) error {
	if whole, ok := errors.AsType[*BaselineError](err); ok {
		return whole
	}
	return err
}

func (e *BaselineError) Error() string {
	text := fmt.Sprintf("%s `%s` cannot run on %s, before any change: %s", e.what(), e.Check.Command, e.Base, e.Check.Ending())
	if cause := Cause(e.Check.Tail); cause != "" {
		text += ": " + cause
	}
	for _, n := range e.Refused {
		text += "; " + n.Text
	}
	return text
}

// Baseline describes a run of the gate on the base.
type Baseline struct {
	Run     string // the run that needs it, whose claim is held
	Key     string
	Since   time.Time // start of that run; it gets the result of a gate that could not run since then
	Base    worktree.Base
	Checks  journal.Checks
	Asked   context.Context                 // its end asks the checks to end; nil: it never ends
	Notify  func(journal.EventKind, string) // called when the checks start, and when another run has started them
	Observe func(loop.Event)
	Stream  func(name string) (io.WriteCloser, error)
	Refused func(egress.Event)
}

// Baselines runs gates on bases and keeps the results. It is safe for concurrent use.
type Baselines struct {
	c           *Config
	dir         string
	busy        chan struct{}         // held while a gate runs, so that others wait for its result
	failedGates map[string]failedGate // by name; guarded by busy

	mu     sync.Mutex
	holder string // key of the run whose gate is in progress; guarded by mu; empty: unknown
}

// failedGate is a gate that could not run.
type failedGate struct {
	err     *BaselineError
	at      time.Time // when it failed
	foundBy string    // key of the run that found it
}

// NewBaselines returns Baselines that keep results in a folder, by commit and commands. A file that is missing, damaged, or
// cannot be read or written only means that the gate runs once more.
func NewBaselines(c *Config, dir string) *Baselines {
	return &Baselines{c: c, dir: dir, busy: make(chan struct{}, 1), failedGates: map[string]failedGate{}}
}

// Get runs setup and gate on the base, before any agent is paid. A gate that fails there is a result, for the agent; one that
// cannot run is a BaselineError.
func (bs *Baselines) Get(ctx context.Context, b Baseline) (*journal.Verification, error) {
	b.Asked = cmp.Or(b.Asked, context.Background())
	name := bs.name(ctx, b)
	if v := bs.load(name); v != nil {
		return v, nil
	}
	if err := bs.wait(ctx, b); err != nil {
		return nil, err
	}
	bs.setHolder(b.Key)
	defer func() { bs.setHolder(""); <-bs.busy }()
	if v := bs.load(name); v != nil { // stored by a run that was first
		return v, nil
	}
	if c := bs.failedGates[name]; c.err != nil && c.at.After(b.Since) {
		return nil, &waitedError{c.err, c.foundBy}
	}
	b.Notify(journal.EventSweep, "the gate runs on "+b.Base.Name+" first")
	got, err := bs.c.runOnBase(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("gate on %s: %w", b.Base.Name, err)
	}
	v := &journal.Verification{Tip: b.Base.Commit, Base: b.Base.Name, Checks: got.Checks, Setup: got.Setup}
	for i := range v.Checks {
		v.Checks[i].Tail = bs.c.Secrets.Clean(v.Checks[i].Tail)
	}
	if !got.allCouldRun() {
		err := &BaselineError{Base: b.Base.Name, Check: v.Checks[len(v.Checks)-1], Setup: v.Setup, Refused: got.Refused}
		bs.noteFailed(name, failedGate{err, time.Now(), b.Key}) // for runs in progress; a later run tries again
		return nil, err
	}
	if err := bs.save(name, baseline{v, bs.c.Homes.Kept(ctx, b.Base.Commit)}); err != nil {
		bs.c.Log.Warn("the result of the gate on the base is not kept", "error", err)
	}
	return v, nil
}

// noteFailed notes a gate that could not run, and forgets old ones. The caller holds busy.
func (bs *Baselines) noteFailed(name string, f failedGate) {
	maps.DeleteFunc(bs.failedGates, func(_ string, old failedGate) bool { return time.Since(old.at) > ResultLife })
	bs.failedGates[name] = f
}

// setHolder notes the key of the run whose gate is in progress.
func (bs *Baselines) setHolder(key string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.holder = key
}

// wait returns when no other gate is in progress.
func (bs *Baselines) wait(ctx context.Context, b Baseline) error {
	select {
	case bs.busy <- struct{}{}:
		return nil
	default:
		bs.mu.Lock()
		by := cmp.Or(bs.holder, "another issue")
		bs.mu.Unlock()
		b.Notify(journal.EventNote, "waits for the gate on "+b.Base.Name+", which runs for "+by)
	}
	select {
	case bs.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-b.Asked.Done():
		return context.Canceled
	}
}

func (c *Config) runOnBase(ctx context.Context, b Baseline) (got Checked, err error) {
	facts := []string{"RALPH_RUN=" + b.Run, "RALPH_BASE=" + b.Base.Name}
	made, err := c.Prepare(ctx, Before{
		Run: b.Run, Key: b.Key, Base: b.Base, Env: facts, Interrupt: b.Asked.Done(), Stream: b.Stream,
	})
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, made.Drop(ctx)) }()
	return c.Check(ctx, Checkout{
		Run: b.Run, Name: "base", Key: b.Key, Base: b.Base, From: b.Base.Commit, Checks: b.Checks, Made: made, Env: facts,
		Asked: b.Asked, Observe: b.Observe, Stream: b.Stream, Refused: b.Refused, FillHome: true,
	})
}

func (bs *Baselines) name(ctx context.Context, b Baseline) string {
	return bs.c.Conditions(ctx, b.Checks, b.Base.Commit) + ".json"
}

// Conditions returns a hash of everything that the result of checks depends on besides the commit, as far as ralph knows it. more
// has conditions that only the caller knows.
func (c *Config) Conditions(ctx context.Context, checks journal.Checks, more any) string {
	tools := "" // those of the image
	if k, ok := sandboxes.As[sandboxes.HomeKeyer](c.Sandboxes); ok {
		key, err := k.HomeKey(ctx)
		if tools = key; err != nil {
			tools = time.Now().String() // the engine is away: match no stored result
		}
	}
	if c.Homes != nil { // the inputs decide where setup runs
		more = []any{more, c.Homes.Inputs}
	}
	checks.Files, checks.Retest, checks.RetestCommand = "", "", "" // they do not change results
	text, err := json.Marshal([]any{c.Sandboxes.Name(), tools, checks, c.Before, c.Env, c.Network.Allow, c.Mounts, c.Limits, more})
	if err != nil {
		panic(err) // it has only strings and numbers
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// ResultLife is how long a result of checks is used: things outside the repository change, too.
const ResultLife = homes.Life

const baselinesKept = 50

// baseline is a stored result.
type baseline struct {
	*journal.Verification
	Home string `json:"home,omitempty"` // name of the home that the run has left; without it the next runs would start with an empty one
}

// load returns a stored result, unless its home has been removed since; nil: there is none.
func (bs *Baselines) load(name string) *journal.Verification {
	path := filepath.Join(bs.dir, name)
	info, err := os.Stat(path)
	if err != nil || time.Since(info.ModTime()) > ResultLife {
		return nil
	}
	text, err := os.ReadFile(path)
	v := baseline{Verification: &journal.Verification{}}
	if err != nil || json.Unmarshal(text, &v) != nil || len(v.Checks) == 0 || v.Home != "" && !bs.c.Homes.Has(v.Home) {
		return nil
	}
	return v.Verification
}

func (bs *Baselines) save(name string, v baseline) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(bs.dir, 0o700); err != nil {
		return err
	}
	bs.prune()
	return disk.WriteFile(filepath.Join(bs.dir, name), text, 0o600, disk.Process)
}

// prune makes room for another result: it removes results that are too old to be used, and the oldest if there are too many.
func (bs *Baselines) prune() {
	for n, f := range disk.NewestFiles(bs.dir) {
		if n >= baselinesKept-1 || time.Since(f.ModTime()) > ResultLife {
			_ = os.Remove(filepath.Join(bs.dir, f.Name())) // tried again next time
		}
	}
}
