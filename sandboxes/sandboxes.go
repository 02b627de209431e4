// Package sandboxes defines the boundary in which every agent, setup and gate command runs.
//
// A [Provider] opens a [Sandbox] for one run. A sandbox executes commands until it is closed. The package knows neither
// agents nor git: it moves bytes and processes. A program composes its providers in a [Registry]; there are no globals, and
// everything is safe for concurrent use unless its comment states otherwise.
//
// Providers differ in how the worktree reaches the sandbox ([Files]) and in how strongly they isolate ([Isolation]). A
// caller states its needs in a [Spec]. A provider that cannot meet them fails with [ErrUnsupported]; it never weakens them
// silently.
package sandboxes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrUnsupported is wrapped by Open when the provider cannot meet the spec. The error names the unmet part.
var ErrUnsupported = errors.New("sandbox cannot do this")

// ErrClosed is returned by Exec after Close.
var ErrClosed = errors.New("sandbox is closed")

// ErrUnavailable is wrapped by the error of an Exec that was cut short because the sandbox's engine stopped or does not answer.
var ErrUnavailable = errors.New("the engine does not answer")

// ErrKilledInside is wrapped by the error of an Exec when a command of the sandbox has killed the process inside that runs
// the commands. The sandbox is broken then.
var ErrKilledInside = errors.New("a command in the sandbox has killed ralph's process there, which runs the commands")

// Files names how the worktree reaches the sandbox.
type Files string

const (
	// InPlace: commands run on the host's own worktree, at its host path, with its own git directory.
	InPlace Files = "in-place"
	// Bind: the worktree is mounted. A file written inside is on the host at once.
	Bind Files = "bind"
	// Copy: Open copies the worktree and the private repository to the sandbox's own disk (package sandboxes/copying).
	// Nothing is copied back automatically: commits leave as a git pack on a command's standard output, other files through
	// a [Fetcher].
	Copy Files = "copy"
)

// Isolation names the kind of boundary between the agent and the host.
type Isolation string

const (
	NoIsolation Isolation = "none"
	AccessRules Isolation = "access-rules"
	Namespaces  Isolation = "namespaces"
	Container   Isolation = "container"
	VM          Isolation = "vm"
)

// Capabilities describes a provider. The zero value promises nothing.
type Capabilities struct {
	Files     Files
	Isolation Isolation
	Egress    bool // outgoing connections are limited to an allow-list of domains
	OwnEgress bool // the provider limits connections by its own policy and ignores Spec.Egress
	Limits    bool // memory, CPU and process limits are enforced
	Secrets   bool // credentials stay outside; the sandbox has placeholders
	Disk      bool // Spec.Disk is supported
	Home      bool // Spec.Home is supported
	// Weaker describes for people, in a few words, what this isolating provider does not prevent although others do. Empty:
	// nothing is known.
	Weaker string
}

// Isolated reports whether the host is protected from the commands inside.
func (c Capabilities) Isolated() bool { return c.Isolation != "" && c.Isolation != NoIsolation }

// Spec describes the sandbox that one run needs.
type Spec struct {
	// Run is the unique id of the run. A provider marks every process, container and file with it, so that what a crashed
	// ralph left can be found without any other record. A run has at most one open sandbox.
	Run string
	// Name is the sandbox's name for people and for the engine's own program, with providers whose sandboxes have names.
	// Open fails if the name is taken. Empty: the provider chooses one.
	Name string
	// Worktree is the absolute host path of the run's worktree.
	Worktree string
	// GitDir is the absolute host path of the private repository. Isolating providers show it at the same path, writable.
	// They cover the worktree's .git with a read-only file that points to it, or with the repository itself, so that
	// commands can neither remove nor replace it. With GitDir the worktree must be a linked one, whose .git is a file: a
	// .git folder cannot be covered, and Open fails. Providers with InPlace files ignore GitDir.
	GitDir string
	// Env is the environment ("K=V") of commands, added to the provider's base environment.
	Env []string
	// RequireIsolation makes Open fail on a provider that does not isolate.
	RequireIsolation bool

	// Providers with InPlace files ignore all fields below.

	// Workdir is the absolute path of the worktree inside, so that caches with absolute paths serve several runs. Empty:
	// the host path. A provider that cannot choose the path ignores Workdir: Sandbox.Workdir returns the actual path.
	Workdir string
	// ReadOnly shows the worktree read-only. With Copy files the copy stays writable, and nothing is copied back.
	ReadOnly bool
	// Objects lists absolute host paths of the object folders that the private repository borrows from. They are shown
	// read-only at the same paths. With Copy files the repository gets a copy of the objects instead.
	Objects []string
	// Egress is the host path of the unix socket of this run's egress proxy (package sandboxes/egress). The proxy is the
	// only connection out of the sandbox. Empty: no network at all.
	Egress string
	// Lower is a host folder with files of the worktree, the lower layer of an overlay; empty: Worktree has all files.
	// Commands see Worktree over Lower, and their changes go into Worktree only. The parent folder of Worktree must then
	// belong to the run and contain nothing else. Only a Layerer supports Lower.
	Lower string
	// Setup is a second lower folder above Lower, with the files that setup has added to the worktree. Empty: none. Without
	// Lower it is the only lower folder.
	Setup string
	// Mounts are the mounts that the user configured.
	Mounts []Mount
	Limits Limits
	// Home is a host folder with the initial content of the commands' home; empty: an empty home. With FillHome, commands
	// write to the folder itself. Otherwise it never changes: their changes go to the scratch space, which Close deletes.
	Home     string
	FillHome bool
	// Disk asks for folders on the sandbox's own disk instead of host folders. Nil: none.
	Disk *Disk `json:"-"`
}

// Disk is a set of folders that belong to the sandbox and not to the host, for engines that cannot mount host folders. It
// survives a crash of ralph, and the Close of a broken sandbox: the next Open with the same Run ends the commands that
// still run and shows the same folders. Any other Close, and Reap, removes it.
//
// With a Disk, the Spec's Worktree only names the working folder and its owner; GitDir, Objects and Mounts are empty.
type Disk struct {
	// Folders maps an absolute path inside to a folder name (letters and digits). Paths with the same name show the same
	// folder. A new folder is empty; commands can write to it.
	Folders map[string]string
	// ReadOnly lists the paths that become read-only once Fill has succeeded.
	ReadOnly []string
	// Fill is called by Open once the sandbox can run commands, if the folders are new. If it fails, or ralph dies
	// meanwhile, the folders are discarded: the next Open starts with new ones.
	Fill func(ctx context.Context, s Sandbox) error
}

// Limits bounds the resources of one sandbox. Zero means the provider's default, which is never "no limit". [Spec.Check] refuses a
// negative number.
type Limits struct {
	Memory int64   // bytes; default 4 GiB
	CPUs   float64 // default 2
	PIDs   int     // processes and threads; default 1024
	Disk   int64   // bytes of scratch space (/tmp, home); default 2 GiB
}

// WithDefaults replaces zero fields with the defaults.
func (l Limits) WithDefaults() Limits {
	return Limits{Memory: cmp.Or(l.Memory, 4<<30), CPUs: cmp.Or(l.CPUs, 2), PIDs: cmp.Or(l.PIDs, 1024), Disk: cmp.Or(l.Disk, 2<<30)}
}

// Provider opens sandboxes. Implementations are safe for concurrent use.
type Provider interface {
	// Name returns the name that users write in flags and configuration.
	Name() string
	// Capabilities is constant for one provider value.
	Capabilities() Capabilities
	// Check reports whether the provider works on this host now. The error is one line that names the missing part and the
	// fix on the host; settings that help are in a FixError. Check returns soon after ctx ends.
	Check(ctx context.Context) error
	// Open opens a sandbox. It returns when commands can run, or with an error and nothing left behind. It gives up soon
	// after ctx ends. After Open has returned, ctx no longer affects the sandbox.
	Open(ctx context.Context, spec Spec) (Sandbox, error)
}

// Sandbox is the boundary of one run. Exec may be called from several goroutines.
type Sandbox interface {
	// Workdir returns the absolute path of the worktree inside.
	Workdir() string
	// Exec runs one command to its end and kills every process that it started.
	//
	// A nil error means that the command ran to its end, and the Exit describes that end. An error means that this is not
	// known: the command could not be started (*StartError), the sandbox is closed (ErrClosed) or broken, or ctx ended
	// (context.Cause(ctx)).
	//
	// When cmd.Interrupt closes, the command gets a SIGTERM, and a SIGKILL after cmd.Grace; Exec then returns the Exit.
	// When ctx ends, the whole process tree is killed at once. In every case Exec returns only after all processes of the
	// tree have ended and the last call of a writer has returned.
	Exec(ctx context.Context, cmd Command) (Exit, error)
	// Close ends all commands and releases the sandbox. It is idempotent, and safe during Exec, which then returns. It
	// never deletes the worktree. It returns soon after ctx ends, and may be called again.
	Close(ctx context.Context) error
}

// Command is one program to run inside a sandbox.
type Command struct {
	// Argv is the program and its arguments. No shell interprets it.
	Argv []string
	// Dir is the working directory inside; empty means Workdir.
	Dir string
	// Env is added to the sandbox's environment; later entries win.
	Env []string
	// Stdin is read to its end; nil is empty. A command may exit without reading it. Exec does not wait for a blocked Read,
	// but the reading goroutine remains until Read returns: close the source after Exec.
	Stdin io.Reader
	// Stdout and Stderr receive the command's output, each from one goroutine at a time; nil discards it. After a writer's
	// error, copying stops, but the command goes on.
	Stdout, Stderr io.Writer
	// Interrupt asks the command to end when it closes. A nil channel never does.
	Interrupt <-chan struct{}
	// Grace is the time between SIGTERM and SIGKILL; zero means 10 s.
	Grace time.Duration
}

// Exit describes how a command ended.
type Exit struct {
	// Code is the exit status; for a death by signal it is 128 plus the signal's number, never 0.
	Code int
	// Signal is the name of the fatal signal, such as "SIGKILL"; empty when the command exited by itself.
	Signal string
}

// ExitOf returns the Exit of a process that exited with a code or died of a signal; signal <= 0 means no signal.
func ExitOf(code int, signal syscall.Signal) Exit {
	if signal <= 0 {
		return Exit{Code: code}
	}
	// Real-time signals have no name.
	return Exit{Code: 128 + int(signal), Signal: cmp.Or(unix.SignalName(signal), fmt.Sprintf("SIG%d", int(signal)))}
}

// OK reports whether the command exited with status 0.
func (e Exit) OK() bool { return e.Code == 0 && e.Signal == "" }

// StartError means that a command could not be started at all.
type StartError struct {
	Argv0 string
	Err   error
}

func (e *StartError) Error() string {
	return "start " + e.Argv0 + ": " + strings.TrimPrefix(e.Err.Error(), e.Argv0+": ") // the text may begin with the program's name, too
}

// Unwrap returns the cause, such as exec.ErrNotFound.
func (e *StartError) Unwrap() error { return e.Err }

// NoProgram reports whether Exec failed because the program does not exist in the sandbox.
func NoProgram(err error) bool {
	start, ok := errors.AsType[*StartError](err)
	return ok && errors.Is(start, exec.ErrNotFound)
}

// Weakness describes for people how the sandbox protects less than others; empty if no difference is known.
func (c Capabilities) Weakness() string {
	switch {
	case !c.Isolated():
		return "the agent ran on the host, without isolation"
	case c.Weaker != "":
		return "weaker than others: " + c.Weaker
	}
	return ""
}
