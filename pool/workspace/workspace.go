package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/workspace/homes"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/importer"
)

// Workspace is a tree with a sandbox around it: everything that runs in a sandbox runs through it. It belongs to one goroutine.
type Workspace struct {
	Dir     string
	Tree    *worktree.Tree    // nil: the user's own checkout
	Sandbox sandboxes.Sandbox // nil: it is not open
	Gateway *gateway.Gateway
	Meter   *gateway.Meter // counts in every gateway of the run
	Start   string         // start of the commits to count if there is no tree
	Last    worktree.Import
	Asked   context.Context // its end asks the run to end
	// StopContext ends if the run's caller asks for that. An import then has StopGrace left, counted from its own start if that is
	// later. nil: it never ends.
	StopContext context.Context
	// Unclosed: a sandbox that was opened may have left something. Hung: a sandbox may still open.
	Unclosed, Hung bool

	c             *Config
	agents        agents.Chain
	readOnly      bool     // the sandbox shows the tree read-only
	noAgent       bool     // no agent works in it, so a missing login is no error
	id            string   // id of the run, which marks every process
	runEnv        []string // environment of every command
	refused       func(egress.Event)
	disk          *diskAccount
	filling       *homes.Filling     // the home that this sandbox fills; nil: none
	keptSetup     *homes.Home        // what an earlier setup has made; nil: nothing
	skipSetup     bool               // setup need not run
	startMark     *startMark         // of a clean checkout; nil: not known
	importGivenUp error              // why no import is tried again: one did not end in time
	diskFullErr   error              // error of the last import if it met a full disk; else nil
	roomWhenFull  int64              // free bytes after that, on the fuller disk
	lostNotices   []sandboxes.Notice // warnings of a sandbox that broke
	leftUnclosed  bool               // a sandbox was not closed, though a later one may have been
	bare          bool               // a new sandbox replaced a broken one, and its home lacks the files of setup
	showCommand   string             // the command line that shows a disk that stays; empty: there is none
	unsaved       error              // the uncommitted files that the last import could not save; nil: none

	changes   string   // the folder in the sandbox with the changes over the layers of the worktree; empty: there is none
	layers    []string // these layers, on the host
	overSetup bool     // one of the layers is what setup has made
}

// Open opens the sandbox unless it is open. If that fails, a tree without unsaved work is not marked as
// having any.
func (w *Workspace) Open(ctx context.Context) error {
	if w.Sandbox != nil {
		return nil
	}
	saved := w.Tree != nil && !w.Tree.Unsaved()
	err := w.open(ctx)
	if err != nil && saved && w.Tree.Unsaved() {
		err = errors.Join(err, w.Tree.UndoSandbox())
	}
	return err
}

func (w *Workspace) open(ctx context.Context) error {
	c := w.c
	spec := sandboxes.Spec{
		Run:      w.id,
		Worktree: w.Dir,
		Env:      append(slices.Clone(w.runEnv), agents.Conceal(c.Env, slices.Concat(c.Agents, w.agents))...),
		Mounts:   c.Mounts,
		Limits:   c.Limits,
		ReadOnly: w.readOnly,
	}
	if !c.Sandboxes.Capabilities().Isolated() {
		spec.Env = append(slices.Clone(w.runEnv), c.Env...)
	}
	spec.Home, spec.FillHome = w.home(ctx) // in use from here on
	if w.Tree != nil {
		private, err := w.Tree.Sandbox(ctx)
		if err != nil {
			return err
		}
		spec.GitDir, spec.Objects, spec.Lower, spec.Setup, spec.Workdir = private.GitDir, private.Objects, private.Lower, private.Setup, c.workdir()
		w.markStartBeforeOpen()
		if lower := spec.Lower + spec.Setup; lower != "" && c.Layers() == nil { // the tree was made for another sandbox
			return fmt.Errorf("sandbox %s: %w: show %s over %s", c.Sandboxes.Name(), sandboxes.ErrUnsupported, w.Dir, lower)
		}
	}
	var err error
	w.Gateway, err = gateway.Config{
		Run: w.id, Provider: c.Sandboxes, Network: c.Network, Agents: w.agents, Idle: w.noAgent,
		Secrets: c.Secrets, Log: c.Log, Observe: w.refused, Meter: w.Meter, Limited: c.Limited,
	}.Open()
	if err != nil {
		return err
	}
	spec.Egress = w.Gateway.Socket
	w.Unclosed = true
	if w.Sandbox, err = w.openSandbox(ctx, spec); err != nil {
		err = errors.Join(err, w.Gateway.Close())
		w.Gateway = nil
		w.releaseKeptSetup()
		return err
	}
	if b, ok := sandboxes.As[sandboxes.HomeReporter](w.Sandbox); ok && b.EmptyHomeReason() != "" {
		c.Log.Warn("the sandbox starts with an empty home", "run", w.id, "reason", b.EmptyHomeReason())
		w.releaseKeptSetup()
		w.skipSetup = false
	}
	w.changes, w.overSetup = "", spec.Setup != ""
	if b, ok := sandboxes.As[sandboxes.Differ](w.Sandbox); ok {
		w.changes, w.layers = b.Changes(), []string{spec.Lower, spec.Setup}
	}
	w.markStartAfterOpen(ctx)
	w.disk.addFolders(w.Sandbox)
	return nil
}

// Exec runs a command in the sandbox that is open at the time of the call: Import replaces one that broke. If none is open, the
// error is sandboxes.ErrClosed.
func (w *Workspace) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if w.Sandbox == nil {
		return sandboxes.Exit{}, sandboxes.ErrClosed
	}
	return w.Sandbox.Exec(ctx, cmd)
}

// NeedsSetup reports, once, whether setup has to run again because Import has replaced a sandbox that broke.
func (w *Workspace) NeedsSetup() bool {
	bare := w.bare && !w.skipSetup && w.Sandbox != nil
	w.bare = false
	return bare
}

// home returns the home for the sandbox, and whether setup is to fill it.
func (w *Workspace) home(ctx context.Context) (dir string, fill bool) {
	if w.filling != nil {
		return w.filling.Home(), true
	}
	if w.findKeptSetup(ctx); w.keptSetup == nil {
		return "", false
	}
	return w.keptSetup.Dir(), false
}

// fillHome makes the sandbox fill a home for the base. If that fills the disk, the context ends.
func (w *Workspace) fillHome(ctx context.Context, commit string) (limited context.Context, done func()) {
	var err error
	if w.filling, err = w.c.Homes.Fill(ctx, commit); err != nil {
		w.c.Log.Warn("home not kept", "error", err)
	}
	if w.filling == nil {
		return ctx, func() {}
	}
	limited, cancel := context.WithCancelCause(ctx)
	remove := func() {}
	if dir := w.filling.Dir(); w.c.Disk != nil {
		remove = w.c.Disk.Add(ctx, disk.Writer{
			Folders: func() []string { return []string{dir} },
			Marks:   []string{w.id},
			End:     func(e *disk.UsageError) { cancel(e) },
		})
	}
	w.filling.Begin(limited)
	return limited, func() { remove(); cancel(nil) }
}

func (w *Workspace) releaseKeptSetup() {
	if w.keptSetup != nil {
		w.keptSetup.Done()
		w.keptSetup = nil
	}
}

// gitInSandbox runs git in the sandbox, for an import. It passes on the folder of changes only if git alone has made the layer
// below: a layer of setup may contain anything, so that the import has to look at all files.
func (w *Workspace) gitInSandbox(ctx context.Context, cmd worktree.Command) (int, error) {
	if w.changes != "" && !w.overSetup {
		cmd.Env = append(slices.Clone(cmd.Env), importer.ChangesEnv+"="+w.changes)
	}
	exit, err := w.Sandbox.Exec(ctx, sandboxes.Command{
		Argv: cmd.Argv, Env: cmd.Env, Stdout: cmd.Stdout, Stderr: cmd.Stderr,
	})
	return exit.Code, err
}

// Import imports what was committed. In the user's checkout it only counts the commits.
func (w *Workspace) Import(ctx context.Context) error {
	if w.Tree == nil {
		return w.countCommits(ctx)
	}
	if w.importGivenUp != nil {
		return w.importGivenUp
	}
	limited, cancel := w.forImport(ctx)
	defer cancel()
	var in worktree.Inside
	if w.Tree.Spec().Private && (w.Sandbox != nil || w.Tree.Unsaved()) { // otherwise nothing has worked there since the last import
		if err := w.Open(limited); errors.Is(err, sandboxes.ErrUnsupported) { // such as after a crash
			return err
		} else if in = w.gitInSandbox; err != nil {
			in = func(context.Context, worktree.Command) (int, error) { return 0, err }
		}
	}
	if w.diskFullErr != nil && w.roomLeft() < w.roomWhenFull+moreRoom {
		return w.diskFullErr // another import would take as long and fail in the same way
	}
	got, err := w.Tree.Import(limited, in)
	if w.Sandbox != nil && errors.Is(err, importer.ErrInside) && !errors.Is(err, worktree.ErrLate) && limited.Err() == nil {
		w.lostNotices = w.CloseSandbox(limited) // the sandbox broke; a new one shows the same files
		if failed := w.Open(limited); failed == nil {
			w.bare, w.skipSetup = true, w.skipSetup && w.keptSetup != nil
			got, err = w.Tree.Import(limited, w.gitInSandbox)
		}
	}
	w.diskFullErr = nil
	if importer.IsDiskFull(err) {
		w.diskFullErr, w.roomWhenFull = err, w.roomLeft()
	}
	if err != nil && limited.Err() != nil && (ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded)) {
		err = fmt.Errorf("%w: %w", worktree.ErrLate, context.Cause(limited))
	}
	if errors.Is(err, worktree.ErrLate) {
		w.importGivenUp = err
	}
	if err != nil && !(importer.OnlyUnsaved(err) && got.Tip != "") {
		return err
	}
	w.Last, w.unsaved = got, err // files that could not be saved keep the tree; Close reports them
	return nil
}

func (w *Workspace) forImport(ctx context.Context) (context.Context, context.CancelFunc) {
	return halt.Within(ctx, halt.Grace(w.StopContext, max(w.c.StopGrace, halt.Moment)), halt.Killed(ctx, halt.Moment))
}

// moreRoom is the number of bytes that must have become free before another import after one that met a full disk.
const moreRoom = 1 << 20

func (w *Workspace) roomLeft() int64 {
	bytes, _ := importer.FreeSpace(w.Dir, w.c.Repo.Dir())
	return bytes
}

// fewTasks is a number of free processes and threads with which an import may fail.
const fewTasks = 32

// Starved reports whether an import failed because the machine lacks something. Commits can cause git's error, but they
// cannot fake a full disk, or a lack of processes after their agent has ended.
func (w *Workspace) Starved(err error) bool {
	if importer.IsOutOfResources(err) || git.Failed(err) && w.c.Disk != nil && w.c.Disk.Short() != nil {
		return true
	}
	free, limited := proc.FreeTasks()
	return limited && free < fewTasks && importer.IsTemporary(err)
}

// countCommits counts the commits since Start in the user's checkout.
func (w *Workspace) countCommits(ctx context.Context) error {
	now, err := w.c.Repo.Base(ctx, "HEAD")
	if err != nil {
		return err
	}
	commits, err := w.c.Repo.Log(ctx, w.Start, now.Commit)
	if err != nil {
		return err
	}
	w.Last = worktree.Import{Tip: now.Commit, Commits: commits, New: max(0, len(commits)-len(w.Last.Commits))}
	return nil
}

// Work returns the part of the last import that the loop needs.
func (w *Workspace) Work() loop.Work {
	return loop.Work{Tip: w.Last.Tip, Commits: len(w.Last.Commits), New: w.Last.New}
}

// CloseSandbox closes the sandbox; the tree stays. Once the run is asked to end, that may take StopGrace. It may be called more than
// once.
func (w *Workspace) CloseSandbox(ctx context.Context) (notices []sandboxes.Notice) {
	if w == nil {
		return nil
	}
	ctx, cancel := halt.Within(ctx, halt.Grace(w.Asked, max(w.c.StopGrace, halt.Moment)))
	defer cancel()
	if w.Sandbox != nil {
		if k, ok := sandboxes.As[sandboxes.DiskKeeper](w.Sandbox); ok && w.Tree != nil && w.Tree.Unsaved() {
			w.showCommand = k.KeepDisk() // only the disk has what is not imported
		}
		err := w.Sandbox.Close(ctx)
		if w.Unclosed = err != nil; w.Unclosed {
			w.leftUnclosed = true
			notices = append(notices, sandboxes.Noticef("the sandbox could not be closed, so some of its processes may be left: %v", err))
		}
		for _, n := range sandboxes.NoticesOf(w.Sandbox) {
			n.Text = "sandbox: " + n.Text
			notices = append(notices, n)
		}
	}
	refused := w.refusals()
	w.Sandbox = nil
	w.releaseKeptSetup()
	notices, w.lostNotices = slices.Concat(w.lostNotices, notices, refused, w.Meter.Notices()), nil
	if err := w.Gateway.Close(); err != nil {
		notices = append(notices, sandboxes.Noticef("network: %v", err))
		w.Unclosed = true
	}
	w.Gateway = nil
	return notices
}

// refusals lists the connections that were refused so far.
func (w *Workspace) refusals() (notices []sandboxes.Notice) {
	if r, ok := sandboxes.As[sandboxes.RefusalReporter](w.Sandbox); ok {
		notices = gateway.Refusals(r.Refusals())
	}
	return append(notices, w.Gateway.Refused()...)
}

// Close imports what is left, and removes the sandbox and, unless keep is set, the tree. A tree stays if its work cannot be
// imported or if its sandbox is not gone; its record keeps it findable.
func (w *Workspace) Close(ctx context.Context, keep bool) (notices []sandboxes.Notice) {
	if w == nil {
		return nil
	}
	defer w.Forget()
	var kept error
	if w.Tree != nil && w.Tree.Unsaved() {
		if kept = w.Import(ctx); kept == nil && len(w.Last.Gitlinks) > 0 {
			notices = append(notices, sandboxes.Noticef("%s is a nested repository, so its files are in no commit", strings.Join(w.Last.Gitlinks, ", ")))
		}
	}
	notices = append(notices, w.CloseSandbox(ctx)...)
	if w.unsaved != nil {
		notices = append(notices, sandboxes.Notice{Text: w.unsaved.Error()})
	}
	if w.Tree == nil {
		return notices
	}
	err := w.reapUnclosed(ctx)
	if keep {
		w.Tree.Unlock(ctx) // the checks may have left locks since the import
	}
	switch {
	case keep && err != nil:
		notices = append(notices, sandboxes.Noticef("the sandbox over %s may run until that worktree is removed: %v", w.Dir, err))
	case keep:
	case err != nil:
		notices = append(notices, sandboxes.Noticef("the worktree %s stays until the next sweep ends its sandbox: %v", w.Dir, err))
	default:
		err := w.Tree.Remove(ctx)
		if aside, ok := errors.AsType[*worktree.SetAsideError](err); ok {
			where := aside.Files()
			if w.showCommand != "" {
				where = fmt.Sprintf("its files are in volumes of sandbox %s; to see them: %s; %s only has the files from its start",
					w.c.Sandboxes.Name(), w.showCommand, aside.Dir)
			}
			return append(notices, sandboxes.Noticef("the work in %s cannot be imported: %s; %s", w.Dir, aside.Cause, where))
		}
		if kept == nil || !errors.Is(err, worktree.ErrUnsaved) {
			kept = cmp.Or(err, kept)
		}
	}
	if kept != nil {
		notices = append(notices, sandboxes.Noticef("the worktree %s stays: %v", w.Dir, kept))
	}
	return notices
}

// Forget ends the run's account with the disk guard, and its meter. Nothing of the run may write or make requests any more.
func (w *Workspace) Forget() {
	if w == nil {
		return
	}
	w.releaseKeptSetup()
	w.disk.close()
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	delete(w.c.meters, w.id)
}
