// Package sandboxes is the boundary in which every agent, setup and gate command runs.
//
// A [Provider] opens a [Sandbox] for one run; a sandbox executes commands and is closed once. The package starts no agent
// and knows no git: it moves bytes and processes. Providers are values, looked up by name in a [Registry] that the
// program composes; nothing here is global, and everything is safe for concurrent use unless its comment says otherwise.
//
// Providers differ in how the worktree gets in ([Files]) and in how strongly they isolate ([Isolation]). A caller states
// its needs in a [Spec]; a provider that cannot meet them fails with [ErrUnsupported]. Nothing is silently weaker.
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

// ErrUnsupported is wrapped by Open when the provider cannot meet the spec. The error names the part that it cannot meet.
var ErrUnsupported = errors.New("sandbox cannot do this")

// ErrClosed is returned by Exec after Close.
var ErrClosed = errors.New("sandbox is closed")

// ErrAway is in the error of an Exec that was cut short because the engine of the sandbox stopped, or does not answer.
var ErrAway = errors.New("the engine does not answer")

// ErrKilledInside is in the error of an Exec whose command, or another in the sandbox, has killed what carries commands. The
// sandbox is broken.
var ErrKilledInside = errors.New("a command in the sandbox has killed ralph's process there, which runs the commands")

// Files says how the worktree reaches the sandbox.
type Files string

const (
	// InPlace: commands run on the host's own worktree, at its own path, with its own git directory.
	InPlace Files = "in-place"
	// Bind: the worktree is mounted. A file written inside is on the host at once.
	Bind Files = "bind"
	// Copy: Open copies the worktree and the private repository to the sandbox's own disk (package sandboxes/copying).
	// Nothing comes back by itself: commits leave as a git pack that a command writes to its standard output, and other
	// files by a [Fetcher].
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

// Capabilities says what a provider does. Its zero value promises nothing.
type Capabilities struct {
	Files     Files
	Isolation Isolation
	Egress    bool // outgoing connections are limited to an allow-list of domains
	OwnEgress bool // the provider limits them by a policy of its own and ignores Spec.Egress
	Limits    bool // memory, CPU and process limits are enforced
	Secrets   bool // credentials stay outside; the sandbox has placeholders
	Disk      bool // Spec.Disk is supported
	Home      bool // Spec.Home is supported
	// Weaker says in a few words, for people, what an isolating provider does not stop although others do. Empty: nothing
	// is known.
	Weaker string
}

// Isolated reports whether the host is protected from the commands inside.
func (c Capabilities) Isolated() bool { return c.Isolation != "" && c.Isolation != NoIsolation }

// Spec states the needs of one run.
type Spec struct {
	// Run is the unique id of the run. A provider marks every process, container and file with it, so that the remains of
	// a crashed ralph are found without any other record. At most one sandbox of a run is open at a time.
	Run string
	// Name is what the sandbox is called by people and by the engine's own program, for providers whose sandboxes have
	// names. Open fails when the name is taken. Empty: the provider chooses a name.
	Name string
	// Worktree is the absolute host path of the run's worktree.
	Worktree string
	// GitDir is the absolute host path of the private repository. Isolating providers show it at the same path, writable,
	// and cover the worktree's .git with a read-only file that points to it, or with the repository itself, so that
	// commands can neither remove nor replace it. With GitDir the worktree has to be a linked one, whose .git is a file: a .git
	// folder cannot be covered, and Open fails. Providers with InPlace files ignore it.
	GitDir string
	// Env is the environment ("K=V") that commands get in addition to the provider's own base.
	Env []string
	// RequireIsolation makes Open fail on a provider that does not isolate.
	RequireIsolation bool

	// The other fields are for providers that isolate; those with InPlace files ignore them.

	// Workdir is the absolute path inside that the worktree is shown at, so that caches with paths serve several runs; empty:
	// its own. A provider that cannot choose it ignores it: Sandbox.Workdir says where it is.
	Workdir string
	// ReadOnly shows the worktree read-only. With Copy files it is a copy, of which nothing comes back, and stays writable.
	ReadOnly bool
	// Objects are absolute host paths of object folders that the private repository borrows from. They are shown
	// read-only at the same paths. With Copy files the repository gets a copy of the objects instead.
	Objects []string
	// Egress is the host path of the unix socket of the egress proxy for this run (package sandboxes/egress). No other
	// connection leaves the sandbox. Empty: no network at all.
	Egress string
	// Lower is a host folder with files of the worktree; empty: Worktree has all of them. Commands see these files, and over
	// them those of Worktree, where everything goes that they change: Lower stays as it is. The folder that Worktree is in is
	// then the run's own and has nothing else. Only a Layerer can do this.
	Lower string
	// Setup is a second such folder, whose files are over those of Lower: what setup has put into the worktree. Empty: there is
	// none. Without Lower it is the only one.
	Setup string
	// Mounts are the user's own.
	Mounts []Mount
	Limits Limits
	// Home is a host folder with what commands find in their home; empty: nothing. With FillHome they write to the folder
	// itself. Otherwise it never changes: what they change is on the scratch space, and gone at the end.
	Home     string
	FillHome bool
	// Disk asks for folders on the sandbox's own disk in place of everything of the host. Nil: there are none.
	Disk *Disk `json:"-"`
}

// Disk is a set of folders that belong to the sandbox and not to the host, for engines that cannot mount host folders. It
// outlives a crash of ralph, and the Close of a sandbox that broke: the next Open with the same Run ends whatever still
// runs and shows the same folders. Any other Close, and Reap, removes it.
//
// With a Disk the Spec's Worktree only names the working folder and its owner, and GitDir, Objects and Mounts are empty.
type Disk struct {
	// Folders maps an absolute path inside to a folder's name (letters and digits). Paths with the same name show the same
	// folder. A new folder is empty; commands can write to it.
	Folders map[string]string
	// ReadOnly are those of the paths that commands can write to only until the folders are filled.
	ReadOnly []string
	// Fill is called by Open once the sandbox can run commands, if the folders are new. If it fails, or ralph dies
	// meanwhile, the folders do not count: the next Open starts with new ones.
	Fill func(ctx context.Context, s Sandbox) error
}

// Limits bound the resources of one sandbox; zero means the provider's default, which is never "no limit".
type Limits struct {
	Memory int64   // bytes; default 4 GiB
	CPUs   float64 // default 2
	PIDs   int     // processes and threads; default 1024
	Disk   int64   // bytes of scratch space (/tmp, home); default 2 GiB
}

// WithDefaults replaces zeros by the defaults.
func (l Limits) WithDefaults() Limits {
	if l.Memory <= 0 {
		l.Memory = 4 << 30
	}
	if l.CPUs <= 0 {
		l.CPUs = 2
	}
	if l.PIDs <= 0 {
		l.PIDs = 1024
	}
	if l.Disk <= 0 {
		l.Disk = 2 << 30
	}
	return l
}

// Provider opens sandboxes. Implementations are safe for concurrent use.
type Provider interface {
	// Name is the name that users write in flags and configuration.
	Name() string
	// Capabilities is constant for one provider value.
	Capabilities() Capabilities
	// Check reports whether the provider can be used on this host now. The error is one line that names the missing part
	// and what fixes it on the host; settings that help are in a FixError. When ctx ends it returns soon.
	Check(ctx context.Context) error
	// Open opens a sandbox. It returns only when commands can run in it, or with an error and nothing left behind. When ctx ends it
	// gives up soon. Once it has returned, the end of ctx means nothing to the sandbox.
	Open(ctx context.Context, spec Spec) (Sandbox, error)
}

// Sandbox is one run's boundary. Exec may be called from several goroutines.
type Sandbox interface {
	// Workdir is the absolute path of the worktree inside.
	Workdir() string
	// Exec runs one command to its end and kills every process it started.
	//
	// The two returns are different facts. A nil error means that the command ran, and the Exit says how it ended. An
	// error means that it is not known to have run to its end: it could not be started (*StartError), the sandbox is
	// closed (ErrClosed) or broken, or ctx ended (context.Cause(ctx)).
	//
	// When cmd.Interrupt closes, the command is asked to end (SIGTERM), and killed after cmd.Grace; Exec then returns
	// the Exit. When ctx ends, the whole tree is killed at once. In every case Exec returns only when no process of
	// the tree is left and no writer will be called again.
	Exec(ctx context.Context, cmd Command) (Exit, error)
	// Close ends everything that still runs and frees the sandbox. It is idempotent and safe during Exec, which then
	// returns. It never deletes the worktree. When ctx ends it returns soon, and may be called again.
	Close(ctx context.Context) error
}

// Command is one program to run inside.
type Command struct {
	// Argv is the program and its arguments; it is never passed through a shell.
	Argv []string
	// Dir is the working directory inside; empty means Workdir.
	Dir string
	// Env is added to the sandbox's environment; later entries win.
	Env []string
	// Stdin is read to its end; nil is empty. A command that ends without reading it is not an error. Exec does not
	// wait for a Read that blocks, but the goroutine that reads stays until Read returns: close its source after Exec.
	Stdin io.Reader
	// Stdout and Stderr receive the command's output, each from one goroutine at a time; nil discards. A writer's error
	// stops the copying, not the command.
	Stdout, Stderr io.Writer
	// Interrupt, when closed, asks the command to end. Nil never does.
	Interrupt <-chan struct{}
	// Grace is the time between asking and killing; zero means 10 s.
	Grace time.Duration
}

// Exit is how a command that ran has ended.
type Exit struct {
	// Code is the exit status; for a death by signal it is 128 plus the signal's number, never 0.
	Code int
	// Signal is the name of the signal that ended it, such as "SIGKILL"; empty when it exited by itself.
	Signal string
}

// ExitOf is the Exit of a process that has exited with a code, or was ended by a signal; zero or less: by none.
func ExitOf(code int, signal syscall.Signal) Exit {
	if signal <= 0 {
		return Exit{Code: code}
	}
	// Real-time signals have no name.
	return Exit{Code: 128 + int(signal), Signal: cmp.Or(unix.SignalName(signal), fmt.Sprintf("SIG%d", int(signal)))}
}

// OK reports a regular exit with status 0.
func (e Exit) OK() bool { return e.Code == 0 && e.Signal == "" }

// StartError says that a command could not be started at all.
type StartError struct {
	Argv0 string
	Err   error
}

func (e *StartError) Error() string {
	return "start " + e.Argv0 + ": " + strings.TrimPrefix(e.Err.Error(), e.Argv0+": ") // which may name it, too
}

// Unwrap gives the cause, such as exec.ErrNotFound.
func (e *StartError) Unwrap() error { return e.Err }

// NoProgram reports whether Exec failed because the sandbox has no such program.
func NoProgram(err error) bool {
	start, ok := errors.AsType[*StartError](err)
	return ok && errors.Is(start, exec.ErrNotFound)
}

// Weakness says where the sandbox protects less than others; empty where there is nothing to say.
func (c Capabilities) Weakness() string {
	switch {
	case !c.Isolated():
		return "the agent ran on the host, without isolation"
	case c.Weaker != "":
		return "weaker than others: " + c.Weaker
	}
	return ""
}
