// Package batch merges several branches with one run of the gate. If the branches do not pass together, it tries each half, down
// to single branches, which the caller merges alone. So it finds the failing branch and merges the others. It is a part of
// package pool, and not for other programs.
package batch

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/checks"
	"github.com/ralph-pool/ralph/pool/internal/decide"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/message"
)

// Split calls together with the whole list and, if that is refused, with each half, and so on. A single element goes to alone.
// If the first half of a refused list lands, the second half on top of it would be refused, too, so Split divides it at once.
// The first error of a callback ends it.
func Split[T any](list []T, together func([]T) (landed bool, err error), alone func(T) (landed bool, err error)) error {
	_, err := split(list, false, together, alone)
	return err
}

func split[T any](list []T, refused bool, together func([]T) (bool, error), alone func(T) (bool, error)) (all bool, err error) {
	switch {
	case len(list) == 0:
		return true, nil
	case len(list) == 1:
		return alone(list[0])
	case !refused:
		if all, err = together(list); all || err != nil {
			return all, err
		}
	}
	half := len(list) / 2
	first, err := split(list[:half], false, together, alone)
	if err != nil {
		return false, err
	}
	second, err := split(list[half:], first, together, alone)
	return first && second, err
}

// Branch is a branch to merge.
type Branch struct {
	Key, Name, Title string
	Tip              string
	BuiltOn          string // commit of the base on which the commits are built; may be empty
}

// Merger makes and checks stacks of branches. Its fields are required unless they say otherwise.
type Merger struct {
	Repo      *worktree.Repo
	Spaces    *workspace.Config
	Baselines *workspace.Baselines
	Policy    publish.Policy
	Checks    journal.Checks
	Canaries  []config.Canary // may be nil
	Run       string          // id of the checks' folders and processes
	Notify    func(text string)
	Asked     context.Context // its end asks the checks to end

	tries int
	said  []string // messages about branches that cannot be merged with the others
}

// Stack is a list of branches merged on top of each other. No ref holds its commits yet.
type Stack struct {
	Base   worktree.Base
	Keys   []string
	Tip    string
	Verify *journal.Verification // nil: there is no gate
	Watch  *journal.Watch
}

// Record returns the record of a branch's run after the stack has passed. tip and commits are those of the branch.
func (s Stack) Record(rec journal.Record, tip string, commits int) journal.Record {
	rec.Stage, rec.Tip, rec.Commits = journal.StageVerify, tip, commits
	rec.Facts.Kind, rec.Facts.Attempt, rec.Facts.Limits, rec.Facts.Files = rec.Kind, rec.Attempt, rec.Settings.Limits, rec.Settings.Checks.Files
	rec.Facts.End, rec.Facts.Commits, rec.Facts.Tip, rec.Facts.Verify, rec.Facts.Watch = loop.EndDone, commits, tip, s.Verify, s.Watch
	rec.Warnings = append(rec.Warnings, sandboxes.Noticef("the gate ran once for %s, which were merged together",
		strings.Join(s.Keys, ", ")))
	return rec
}

// Fits returns the reason why a branch cannot be in a stack on the base; empty if it can. The caller finds the full reason when
// it merges the branch alone.
func (m *Merger) Fits(ctx context.Context, base worktree.Base, b Branch) (why string, err error) {
	found, err := m.Policy.CheckFrom(ctx, []string{base.Commit}, b.Tip)
	if err != nil || len(found) > 0 {
		return strings.Join(found, "; "), err
	}
	out, err := m.Repo.Git().Output(ctx, "log", "-z", "--encoding=", "--format=%e%x1f%B", "--end-of-options", base.Commit+".."+b.Tip, "--")
	if err != nil {
		return "", err
	}
	for one := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if encoding, text, ok := strings.Cut(one, "\x1f"); ok && message.ActsOnForge(encoding, text) {
			return "ralph has to rewrite messages of its commits", nil
		}
	}
	// The checks that it changes would judge the others, too.
	watch, err := (&checks.Watcher{Spaces: m.Spaces}).Read(ctx, base.Commit, b.Tip, m.Checks)
	if err != nil {
		return "", err
	}
	if watch.GateNotRun = false; watch.Changed() { // tests that it adds run with the stack
		return "it changes its own checks", nil
	}
	_, conflict, err := m.onto(ctx, base.Commit, b)
	return conflict, err
}

// onto merges a branch into a commit. A branch that contains the commit needs no merge. One that is built on what the base has
// lost since has to be rebased first.
func (m *Merger) onto(ctx context.Context, at string, b Branch) (commit, conflict string, err error) {
	if b.BuiltOn != "" {
		if lost, err := m.Repo.Spans().Lost(ctx, b.BuiltOn, at, b.Tip); err != nil || lost {
			return "", "the base no longer contains " + git.Short(b.BuiltOn) + ", on which it is built", err
		}
	}
	if over, err := m.Repo.Contains(ctx, b.Tip, at); err != nil || over {
		return b.Tip, "", err
	}
	config, err := m.Repo.Git().Config(ctx)
	if err != nil {
		return "", "", err
	}
	g := m.Repo.Git().With(config.WithoutPrograms()...) // otherwise the commits would choose the merge driver
	tree, files, err := g.MergeTree(ctx, at, b.Tip)
	if err != nil || files != "" {
		return "", "conflict in " + files, err
	}
	if g, err = g.WithIdent(ctx); err != nil {
		return "", "", err
	}
	text := strings.TrimSuffix(fmt.Sprintf("Merge %s: %s", b.Name, tracker.Plain(b.Title, publish.TitleLimit)), ": ")
	commit, err = g.CommitTree(ctx, tree, neutral.Text(text), at, b.Tip)
	return commit, "", err
}

// Try merges the branches on top of the base and runs the gate on the result. It returns nil without an error if they do not
// pass.
func (m *Merger) Try(ctx context.Context, base worktree.Base, list []Branch) (*Stack, error) {
	s, err := m.stack(ctx, base, list)
	if err != nil || s == nil || len(m.Checks.Gate) == 0 {
		return s, err
	}
	green, err := m.base(ctx, base, s.Keys[0])
	if err != nil || green == "" {
		return nil, err // a single branch may still repair the base
	}
	names := strings.Join(s.Keys[:len(s.Keys)-1], ", ") + " and " + s.Keys[len(s.Keys)-1]
	m.Notify("the gate runs on " + names + " together")
	m.tries++
	at := base
	at.Commit = s.Tip
	watcher := &checks.Watcher{Spaces: m.Spaces}
	must := m.Checks
	must.Clean = true
	facts := []string{"RALPH_RUN=" + m.Run, "RALPH_BASE=" + base.Name}
	made, err := m.Spaces.Prepare(ctx, workspace.Before{
		Run: m.Run, Key: s.Keys[0], Base: base, Env: facts, Interrupt: m.Asked.Done(), Stream: noLog,
	})
	if err != nil {
		return nil, err
	}
	got, watch, err := watcher.Check(ctx, checks.Examination{
		Base: base.Commit, Green: green, Plant: must.Plant, Own: m.Canaries, Notify: m.Notify,
		Checkout: workspace.Checkout{
			Run: m.Run, Name: fmt.Sprintf("batch-%d", m.tries), Key: s.Keys[0], Base: at, From: base.Commit, Checks: must,
			Made: made, Env: facts, Asked: m.Asked, Refused: m.refused,
		},
	})
	if dropped := made.Drop(ctx); err == nil {
		err = dropped
	}
	if err != nil {
		return nil, err
	}
	s.Verify, s.Watch = &journal.Verification{Tip: s.Tip, Base: base.Name, Checks: got.Checks, Setup: got.Setup}, watch
	v := decide.Verdict(journal.Facts{
		Kind: journal.KindIssue, End: loop.EndDone, Files: must.Files, Commits: 1, Verify: s.Verify, Watch: watch, CompletedAt: time.Now(),
	})
	if !v.Unattended() {
		m.Notify(fmt.Sprintf("%s together do not pass the gate: %s", names, v.Reason.Detail))
		return nil, nil
	}
	return s, nil
}

// stack merges the branches on top of the base; nil without an error if they conflict.
func (m *Merger) stack(ctx context.Context, base worktree.Base, list []Branch) (*Stack, error) {
	s := &Stack{Base: base, Tip: base.Commit}
	for _, b := range list {
		commit, conflict, err := m.onto(ctx, s.Tip, b)
		if err != nil {
			return nil, err
		}
		if conflict != "" {
			if text := fmt.Sprintf("%s cannot be merged with the others: %s", b.Key, conflict); !slices.Contains(m.said, text) {
				m.said = append(m.said, text)
				m.Notify(text)
			}
			return nil, nil
		}
		s.Tip, s.Keys = commit, append(s.Keys, b.Key)
	}
	return s, nil
}

// base returns the base's commit if its own gate passes; otherwise it is empty. The caller holds the claim of the key.
func (m *Merger) base(ctx context.Context, base worktree.Base, key string) (green string, err error) {
	v, err := m.Baselines.Get(ctx, workspace.Baseline{
		Run: m.Run, Key: key, Since: time.Now(), Base: base, Checks: m.Checks, Asked: m.Asked, Stream: noLog, Refused: m.refused,
		Notify: func(_ journal.EventKind, text string) { m.Notify(text) },
	})
	if err != nil || !v.Passed() {
		return "", err
	}
	return v.Tip, nil
}

// refused reports a connection that the sandbox did not allow.
func (m *Merger) refused(e egress.Event) {
	m.Notify(fmt.Sprintf("refused: %s:%d %s", e.Host, e.Port, e.Reason))
}

// noLog discards a log. A branch that does not pass is merged alone, with a log of its own.
func noLog(string) (io.WriteCloser, error) { return discard{io.Discard}, nil }

type discard struct{ io.Writer }

func (discard) Close() error { return nil }
