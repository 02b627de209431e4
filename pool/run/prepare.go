package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/run/internal/tree"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/span"
)

// prepared is the place where the run works.
type prepared struct {
	base      worktree.Base        // start of the work; a rebase moves it
	there     map[string]string    // see worktree.Spec.RemoteTips
	baseMoved bool                 // base is newer than at the start of this process; for reports
	space     *workspace.Workspace // nil: no tree was made or found
	hostFiles *workspace.Made      // files of the user's host commands
	openErr   error                // why the sandbox did not open
}

// prepare makes the tree and opens the sandbox.
func (x *execution) prepare(ctx context.Context, s journal.State) (journal.State, error) {
	if s.Facts.Open != nil || s.Facts.StoppedStage != "" {
		return s, nil
	}
	err := x.task.Failed
	if err == nil {
		err = x.open(ctx)
	}
	if err == nil {
		s.BuiltOn, err = x.builtOn(ctx)
	}
	if err == nil {
		return s, nil
	}
	if not, ok := errors.AsType[*policyError](err); ok {
		s.Facts.Policy = not.findings
		return s, nil
	}
	if x.stop.Stopped(ctx) {
		return x.cut(ctx, s, journal.StagePrepare), nil
	}
	// If a tree with earlier work keeps its sandbox from opening, other runs are not affected.
	fresh := git.Failed(err) && x.r.spaces.Disk.Short() != nil // earlier commits can cause git's error, but they cannot fake a full disk
	if _, sandbox := errors.AsType[*openError](err); sandbox {
		fresh = x.space.CheckProvider(ctx) != nil || !x.r.opened.Load() && (x.space.Tree == nil || x.space.Tree.Start() == x.base.Commit)
	}
	s.Facts.Open, x.openErr = tree.FaultOf(err, fresh), err
	if s.Facts.Open.IsUnavailable() {
		x.result.Unavailable = err
	}
	return s, nil
}

// openError is the failure to open a sandbox.
type openError struct{ error }

func (e *openError) Unwrap() error { return e.error }

// open makes the tree and opens the sandbox in it. A merge by a person opens none: its gate runs on a clean checkout.
func (x *execution) open(ctx context.Context) error {
	waiting, enough := x.stop.ForPreparing(ctx) // for a remote
	defer enough()
	if err := x.chooseBase(ctx, waiting); err != nil {
		return err
	}
	if !x.run.Settings.Attended {
		defer x.r.spaces.Begin(x.run.ID)()
	}
	if err := x.makeTree(ctx, waiting); err != nil {
		return err
	}
	x.space.WatchDisk(ctx, func(err *disk.UsageError) {
		x.stop.Stop(halt.Error(journal.StopDisk, err.Error()))
		x.stop.Kill(err) // during a grace period it would write more
	})
	if err := x.checkStart(ctx); err != nil {
		return err
	}
	if x.run.Settings.Attended {
		if x.space.Tree.Start() == x.base.Commit {
			return fmt.Errorf("branch %s has no commit that %s lacks%s", x.run.Branch, x.base.Name, x.lostCommits(ctx))
		}
		return nil
	}
	if err := x.copyIn(ctx); err != nil {
		return err
	}
	if err := x.runHostCommands(ctx); err != nil {
		return err
	}
	if err := x.space.Open(ctx); err != nil {
		return &openError{err}
	}
	x.r.opened.Store(true)
	return nil
}

// lostCommits says how to bring the issue's latest commits back to the branch, if neither it nor the base has them; "" if there are none.
func (x *execution) lostCommits(ctx context.Context) string {
	tip := journal.History(x.earlier).LostTip(x.base.Commit)
	if tip == "" {
		return ""
	}
	if missing, err := span.Missing(ctx, x.c.Repo.Git(), x.base.Commit, tip); err != nil || !missing {
		return ""
	}
	return fmt.Sprintf("; its last run has left commits at %s; to bring them back: git branch -f %s %[1]s", git.Short(tip), git.Quote(x.run.Branch))
}

// builtOn returns the commit of the base on which the run's commits are built: that of an earlier run if this run continues its
// commits and the base has lost it.
func (x *execution) builtOn(ctx context.Context) (string, error) {
	former := x.run.FormerBase
	if former == "" || x.space.Tree == nil || x.space.Tree.Start() == x.base.Commit {
		return x.base.Commit, nil
	}
	lost, err := x.c.Repo.Spans().Lost(ctx, former, x.base.Commit, x.space.Tree.Start())
	if err != nil || !lost {
		former = x.base.Commit
	}
	return former, err
}

// chooseBase chooses the commit from which the run starts.
func (x *execution) chooseBase(ctx, waiting context.Context) (err error) {
	x.base = x.task.Base
	switch {
	case x.base.Commit == "":
		x.base, x.there, err = x.r.trees.Base(waiting, x.run.Branch)
	case x.run.Settings.Publish == journal.PublishMerge && x.run.Kind == journal.KindIssue:
		x.base, err = x.c.Repo.Base(ctx, x.base.Ref) // includes what was merged since the sweep began
	}
	if err == nil {
		x.run.Base = x.base.Name
	}
	return err
}

// makeTree makes the worktree, or continues in the one that an earlier run on the branch has left.
func (x *execution) makeTree(ctx, waiting context.Context) error {
	if x.task.Head {
		x.space = x.newSpace(nil)
		x.space.Start = x.base.Commit
		return nil
	}
	kept, err := x.r.trees.Kept(ctx, x.run, x.task.Dirty)
	if err != nil {
		return err
	}
	if kept != nil {
		x.space = x.newSpace(kept)
		return nil
	}
	made, err := x.r.trees.Make(ctx, waiting, x.run, x.base, x.there, func(n sandboxes.Notice) {
		x.events.Emit(journal.Event{Kind: journal.EventWarning, Text: n.Text, Subject: n.Subject})
	})
	if err != nil {
		return err
	}
	if made.Start() != x.base.Commit {
		x.run.ExcludedCommit, x.run.RestartReason = "", ""
	}
	if x.space = x.newSpace(made); len(x.c.Setup) > 0 && !x.run.Settings.Attended {
		x.space.AddSetupFiles(ctx)
	}
	return nil
}

// copyIn copies the configured files from the user's checkout.
func (x *execution) copyIn(ctx context.Context) error {
	t := x.space.Tree
	switch {
	case t != nil && t.HasSandboxRun() && len(x.c.Copy)+len(x.c.Before) > 0:
		x.events.Warn("the files of copy and before are kept from the earlier run on " + x.run.Branch)
	case t != nil && len(x.c.Copy) > 0:
		return t.CopyIn(ctx, x.c.Copy)
	}
	return nil
}

// policyError means that the policy refuses the commits of an earlier run.
type policyError struct{ findings []string }

func (e *policyError) Error() string { return strings.Join(e.findings, "; ") }

// checkStart checks the unpublished commits of earlier agents from which the run starts.
func (x *execution) checkStart(ctx context.Context) error {
	tree := x.space.Tree
	if x.run.Kind != journal.KindIssue || tree == nil || tree.Start() == x.base.Commit {
		return nil
	}
	if related, err := x.c.Repo.Spans().Related(ctx, x.base.Commit, tree.Start()); err != nil || !related {
		return err // Verify checks the final tip again
	}
	findings, err := x.r.policy.Check(ctx, tree, x.base.Commit, tree.Start())
	if err == nil && len(findings) > 0 {
		err = &policyError{findings}
	}
	return err
}

// runHostCommands runs the user's host commands and copies the files that they make into the run's tree, if it has one.
func (x *execution) runHostCommands(ctx context.Context) error {
	if x.space.Tree == nil {
		return x.r.spaces.HostCommands(ctx, x.hostCommands(), x.space.Dir)
	}
	if err := x.makeHostFiles(ctx); err != nil || x.space.Tree.HasSandboxRun() {
		return err
	}
	return x.hostFiles.CopyTo(ctx, x.space.Tree)
}

func (x *execution) hostCommands() workspace.Before {
	return workspace.Before{
		Run: x.run.ID, Key: x.run.Key, Base: x.base, Env: x.environment(), Interrupt: x.stop.Asked.Done(), Stream: x.events.Stream,
	}
}

// makeHostFiles runs the host commands unless this process has run them for this run.
func (x *execution) makeHostFiles(ctx context.Context) (err error) {
	if x.hostFiles == nil {
		x.hostFiles, err = x.r.spaces.Prepare(ctx, x.hostCommands())
		x.r.policy.AddMade(ctx, x.hostFiles.Secrets(), x.base.Commit)
	}
	return err
}

// dropHostFiles removes the checkout of the host commands.
func (x *execution) dropHostFiles(ctx context.Context) {
	if err := x.hostFiles.Drop(ctx); err != nil {
		x.log.Warn("checkout of the host commands not removed", "error", err)
	}
}

// newSpace makes the run's workspace for a tree; nil means the user's checkout.
func (x *execution) newSpace(tree *worktree.Tree) *workspace.Workspace {
	w := x.r.spaces.New(x.run.ID, tree, x.environment(), x.events.Refused)
	w.StopContext, w.Asked = x.task.StopContext, x.stop.Asked
	w.Meter.Limit(x.spend.Remaining().Remaining(x.task.Record.Facts.Usage)) // until the agent's loop sets its own limit
	return w
}

// environment returns the environment that every command in the sandbox gets.
func (x *execution) environment() []string {
	out := []string{"RALPH_RUN=" + x.run.ID, "RALPH_BRANCH=" + x.run.Branch}
	if x.run.Kind != journal.KindIssue {
		return out
	}
	title, _ := tracker.Clean(x.run.Title)
	return append(out,
		"RALPH_ISSUE_KEY="+x.run.Key,
		"RALPH_ISSUE_TITLE="+strings.ReplaceAll(title, "\n", " "),
		"RALPH_ISSUE_URL="+x.run.URL,
		"RALPH_BASE="+x.run.Base,
		fmt.Sprintf("RALPH_ATTEMPT=%d", x.run.Attempt))
}

// CheckIdentity returns an error if commits cannot have the configured author, committer and signature. Callers check before an
// agent is paid. With must, the agents' own environment is checked, too: a run without commits is useless.
func (r *Runner) CheckIdentity(ctx context.Context, must bool) error {
	who, err := publish.Author(ctx, r.c.Identity, r.c.Tracker)
	if err != nil {
		return err
	}
	if !must {
		return r.c.Repo.CheckIdentity(ctx, who, nil)
	}
	return r.c.Repo.CheckIdentity(ctx, who, r.spaces.Environ())
}

// resume returns the stage at which the run continues. A run that died before Verify is cut there, and its work is imported.
func (x *execution) resume(ctx context.Context, s *journal.State) journal.Stage {
	if !x.task.Resume {
		s.Facts.Kind, s.Facts.Attempt, s.Facts.Limits, s.Facts.Optional = x.run.Kind, x.run.Attempt, x.run.Settings.Limits, x.task.SignalOptional
		s.Facts.Files = x.run.Settings.Checks.Files
		if x.needsBaseline(ctx) {
			return journal.StageBaseline
		}
		return journal.StagePrepare
	}
	s.PID, s.Process = os.Getpid(), x.r.process
	if err := x.reattach(ctx); err != nil {
		s.Warn(sandboxes.Notice{Text: err.Error()})
	}
	switch {
	case s.Stage.Before(journal.StageVerify):
		s.Facts.Stop, s.Facts.StoppedStage = journal.StopCrash, s.Stage
		return journal.StageVerify
	case s.Stage == journal.StagePublish && s.Published == "" && x.isPushed(*s):
		s.Published, s.Facts.Done = publish.Pushed(x.c.Repo.Remote()), true
	case s.Stage == journal.StagePublish && s.Published == "":
		return journal.StageVerify // the base may have moved, and the merge lock is gone
	}
	return s.Stage
}

// reattach finds the run's tree.
func (x *execution) reattach(ctx context.Context) error {
	found, err := x.r.trees.Find(ctx, x.run)
	if found == nil {
		return err
	}
	x.base = found.Spec().Base
	x.space = x.newSpace(found)
	return nil
}
