// Package checks examines what commits changed in the checks that they have passed: which of the checks' files they changed,
// whether they pass with these files as on the base, and whether a test that must fail still fails. It is a part of package pool,
// and not for other programs.
//
// It collects facts for package pool/internal/decide. It uses only clean checkouts in new sandboxes, and writes only git objects:
// the host never writes into a checkout of an agent's commit.
package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/suite"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
)

// textLimit returns the maximum number of bytes that are read of each file and of all. Larger changes are reported as such.
func textLimit() diff.Limit { return diff.Limit{Each: 1 << 20, All: 64 << 20} }

// maxListed is the maximum number of files and of findings in a record.
const maxListed = 200

// Watcher examines commits. It is safe for concurrent use.
type Watcher struct {
	Spaces *workspace.Config

	mu            sync.Mutex
	touchedOnBase map[string][]string        // guarded by mu; the tracked files that the checks change on a base
	unnoticed     map[string]map[string]bool // guarded by mu; folders of a base in which the gate misses canaries
}

// Examination describes an examination.
type Examination struct {
	Base     string
	Green    string             // a commit that is known to pass, perhaps the base; may be empty
	Checkout workspace.Checkout // of the commits
	Plant    bool               // plant tests that must fail
	Own      []config.Canary    // the user's canaries
	Notify   func(string)       // called before each further run of the gate, with the reason
}

// Read compares the checks' files, and those of the host commands, with the base's. It runs nothing.
func (w *Watcher) Read(ctx context.Context, base, tip string, must journal.Checks) (*journal.Watch, error) {
	out := &journal.Watch{GateNotRun: true}
	_, err := w.read(ctx, base, tip, must, out)
	return out, err
}

// changes has the changes of commits since their fork from the base.
type changes struct {
	fork  string
	files []diff.File
	undo  []diff.Edit // undo the changes of the checks' files
}

// read records the changes of files that checks depend on.
func (w *Watcher) read(ctx context.Context, base, tip string, must journal.Checks, out *journal.Watch) (c changes, err error) {
	g := w.Spaces.Repo.Git()
	if c.fork, err = w.Spaces.Repo.Spans().Fork(ctx, base, tip); err != nil {
		return changes{}, fmt.Errorf("compare with the base: %w", err)
	}
	if c.files, err = diff.Files(ctx, g, c.fork, tip); err != nil {
		return changes{}, err
	}
	gated := len(must.Gate) > 0
	if err := w.addOnHost(ctx, g, c, tip, gated, out); err != nil {
		return c, err
	}
	if err := w.addLater(ctx, g, c, out); err != nil {
		return c, err
	}
	if err := addUnseen(ctx, g, c.files, gated, out); err != nil || !gated {
		return c, err
	}
	var lines []string
	for _, c := range slices.Concat(must.Setup, must.Gate) { // setup can change what the gate runs
		lines = append(lines, c.Line)
	}
	gate, err := follow(ctx, g, c.fork, lines, false, nil)
	if err != nil {
		return changes{}, err
	}
	c.undo, err = compare(ctx, g, c, gate, out)
	return c, err
}

// follow returns the lines, and those of the scripts that they run on a commit. With folders, it adds the folders that scripts name.
// reads, if not nil, reports whether a script is read.
func follow(ctx context.Context, g git.Runner, commit string, lines []string, folders bool, reads func(file string) bool) ([]string, error) {
	var files map[string]diff.Entry // read at the first script
	var failed error
	texts := map[string][]byte{}
	list := func() map[string]diff.Entry {
		if files == nil && failed == nil {
			if files, failed = diff.List(ctx, g, commit); folders {
				addFolders(files)
			}
		}
		return files
	}
	names := sync.OnceValue(func() []string { return slices.Sorted(maps.Keys(list())) })
	lines = suite.Follow(lines, names, func(file string) ([]byte, bool) {
		e, there := list()[file]
		if there && reads != nil && !reads(file) {
			return nil, true
		}
		if _, known := texts[e.ID]; e.Exists() && !known && failed == nil {
			got, err := diff.Texts(ctx, g, []diff.Entry{e}, textLimit())
			if err != nil && !errors.Is(err, diff.ErrTooMuch) {
				failed = err
			}
			texts[e.ID] = got[e.ID]
		}
		return texts[e.ID], there
	})
	return lines, failed
}

// Check runs the checks on a checkout. If they pass, it examines what the commits changed in them.
func (w *Watcher) Check(ctx context.Context, e Examination) (workspace.Checked, *journal.Watch, error) {
	g := w.Spaces.Repo.Git()
	tip := e.Checkout.Base.Commit
	out := &journal.Watch{}
	c, err := w.read(ctx, e.Base, tip, e.Checkout.Checks, out)
	if err != nil {
		return workspace.Checked{}, nil, err
	}
	p := planting{w: w, git: g, fork: c.fork, forkPasses: c.fork == e.Green, files: c.files, checkout: e.Checkout, ownCanaries: e.Own, say: e.Notify}
	// If the commits leave the checks alone, the canary runs in the sandbox in which they passed, which is cheap. Otherwise each
	// run gets a new sandbox: code that has run in this one could forge the result.
	alone := len(out.Files)+len(out.Findings) == 0
	checkout := e.Checkout
	if e.Plant && alone {
		checkout.OnPass = func(ctx context.Context, again workspace.GateRerun) error {
			p.again = again
			return p.plant(ctx, out)
		}
	}
	checkout.Touch = true
	got, err := w.Spaces.Check(ctx, checkout)
	if err != nil || got.Setup || !loop.AllPassed(got.Checks) {
		return got, nil, err
	}
	if err := w.addTouched(ctx, e, c.fork, got.Touched, out); err != nil {
		return got, nil, err
	}
	if len(c.undo) > 0 {
		commit, err := diff.Commit(ctx, g, tip, c.undo, "The checks as they were\n")
		if err != nil {
			return got, nil, err
		}
		e.Notify("the gate runs once more, with the checks as they were on the base")
		if out.Base, err = w.run(ctx, e.Checkout, commit, "before", nil); err != nil {
			return got, nil, err
		}
	}
	if e.Plant && !alone {
		err = p.plant(ctx, out)
	}
	return got, out, err
}

// addTouched records the tracked files that setup and gate change on the commits but not on the base: code that one line runs may
// change what a later line checks.
func (w *Watcher) addTouched(ctx context.Context, e Examination, fork string, paths []string, out *journal.Watch) error {
	if len(paths) == 0 {
		return nil
	}
	w.mu.Lock()
	onBase, known := w.touchedOnBase[fork]
	w.mu.Unlock()
	if !known {
		e.Notify("the checks have changed files that git tracks: they run once more, on the base")
		c := e.Checkout
		c.Base.Commit, c.Name, c.Observe, c.Stream, c.Touch, c.Each = fork, "touched", nil, nil, true, true
		before, err := w.Spaces.Check(ctx, c)
		if err != nil {
			return err
		}
		onBase = before.Touched
		if !before.Setup { // a failed setup proves nothing
			w.mu.Lock()
			w.touchedOnBase = map[string][]string{fork: onBase} // for one base only; most runs share it
			w.mu.Unlock()
		}
	}
	also := map[string]bool{}
	for _, path := range onBase {
		also[path] = true
	}
	for _, path := range paths {
		if !also[path] && len(out.Findings) < maxListed {
			out.Findings = append(out.Findings, path+": the checks changed this file before they tested it")
		}
	}
	return nil
}

// compare records the changes of files that checks depend on, and returns the edits that undo them.
func compare(ctx context.Context, g git.Runner, c changes, gate []string, out *journal.Watch) ([]diff.Edit, error) {
	entries := make([]diff.Entry, 0, 2*len(c.files))
	for _, f := range c.files {
		entries = append(entries, f.Old, f.New)
	}
	texts, err := diff.Texts(ctx, g, entries, textLimit())
	if errors.Is(err, diff.ErrTooMuch) {
		return compareNames(c.files, gate, out), nil
	}
	if err != nil {
		return nil, err
	}
	changes := make([]suite.Change, 0, len(c.files))
	byPath := map[string]diff.File{}
	for _, f := range c.files {
		byPath[f.Path] = f
		changes = append(changes, suite.Change{
			Path: f.Path, OldPath: f.OldPath, Old: texts[f.Old.ID], New: texts[f.New.ID],
			Added: !f.Old.Exists(), Removed: !f.New.Exists(), Link: f.New.Mode == linkMode,
		})
	}
	if err := findReplaced(ctx, g, c.fork, changes, gate); err != nil {
		return nil, err
	}
	sum := suite.Compare(changes, gate)
	out.Added, out.Removed, out.Skipped, out.Focused, out.Assertions = sum.Added, sum.Removed, sum.Skipped, sum.Focused, sum.Assertions
	for _, f := range sum.Findings[:min(maxListed-len(out.Findings), len(sum.Findings))] {
		out.Findings = append(out.Findings, f.String())
	}
	var undo []diff.Edit
	for _, f := range sum.Files {
		addFile(out, byPath[f.Path], journal.Watched{
			Role:      f.Role.String(),
			Why:       f.Reason,
			Test:      f.Role == ecosystem.Test,
			OnlyAdded: f.Grown,
			Helper:    f.Helper,
		})
		if !f.Inline {
			undo = append(undo, byPath[f.Path].Undo()...)
		}
	}
	return undo, nil
}

// compareNames is compare by file names only. It returns the edits that undo the changes.
func compareNames(files []diff.File, gate []string, out *journal.Watch) (undo []diff.Edit) {
	out.Findings = append(out.Findings, tooLarge)
	for _, f := range files {
		role, why := suite.RoleOf(f.Path, gate)
		if before, reason := suite.RoleOf(cmp.Or(f.OldPath, f.Path), gate); before > role {
			role, why = before, reason
		}
		if role != ecosystem.None {
			addFile(out, f, journal.Watched{Role: role.String(), Why: why, Test: role == ecosystem.Test})
			undo = append(undo, f.Undo()...)
		}
	}
	return undo
}

func addFile(out *journal.Watch, f diff.File, as journal.Watched) {
	if len(out.Files) == maxListed {
		out.UnlistedFiles++
		return
	}
	as.Path, as.OldPath, as.Added, as.Removed = f.Path, f.OldPath, !f.Old.Exists(), !f.New.Exists()
	out.Files = append(out.Files, as)
}

// run runs the checks on a commit made for a question about them. output, which may be nil, reads what the commands print.
func (w *Watcher) run(ctx context.Context, c workspace.Checkout, commit, name string, output *finder) (*journal.Verification, error) {
	c.Base.Commit, c.Name, c.Observe, c.Stream = commit, name, nil, nil // these runs give no feedback
	if output != nil {
		c.Stream = func(string) (io.WriteCloser, error) { return output, nil }
	}
	got, err := w.Spaces.Check(ctx, c)
	if err != nil {
		return nil, err
	}
	return &journal.Verification{Tip: commit, Base: c.Base.Name, Checks: got.Checks, Setup: got.Setup}, nil
}
