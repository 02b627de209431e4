// Package sandboxes is the boundary in which every agent, setup and gate command runs.
//
// A [Provider] makes a [Sandbox] for one run; a sandbox executes commands and is closed once. The package starts no
// agent and knows no git: it moves bytes and processes. Providers are values, looked up by name in a [Registry] that
// the program composes; nothing here is global, and everything is safe for use by several goroutines unless said
// otherwise.
//
// Providers differ in how the worktree gets in ([Files]) and in what they hold back ([Isolation]). A caller says what
// it needs in a [Spec]; a provider that cannot meet it fails with [ErrUnsupported]. Nothing is silently weaker.
package sandboxes

import (
	"context"
	"errors"
	"io"
	"time"
)

// ErrUnsupported is wrapped by Open when the provider cannot meet the spec, and names what it cannot meet.
var ErrUnsupported = errors.New("sandbox cannot do this")

// ErrClosed is returned by Exec after Close.
var ErrClosed = errors.New("sandbox is closed")

// Files says how the worktree reaches the sandbox.
type Files string

const (
	// InPlace: commands run on the host's own worktree, at its own path, with its own git directory.
	InPlace Files = "in-place"
	// Bind: the worktree is mounted; what is written inside is on the host at once.
	Bind Files = "bind"
	// Copy: the worktree and the private repository are copied in before a command, and back after it: what is written
	// inside is on the host when Exec or Close returns. Git directories in the worktree stay on their own side.
	Copy Files = "copy"
)

// Isolation names the kind of wall between the agent and the host.
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
	OwnEgress bool // they are limited by a policy of the provider's own; Spec.Egress has no part in it
	Limits    bool // memory, CPU and process limits are enforced
	Secrets   bool // credentials stay outside; the sandbox holds placeholders
	// Weaker says in a few words, for people, what an isolating provider does not hold back and others do. Empty: nothing
	// is known.
	Weaker string
}

// Isolated reports whether the host is protected from what runs inside.
func (c Capabilities) Isolated() bool { return c.Isolation != "" && c.Isolation != NoIsolation }

// Spec is what one run needs of its sandbox.
type Spec struct {
	// Run is the run's unique id. Every process, container or file a provider makes is marked with it, so that the
	// remains of a crashed ralph are found without any other record.
	Run string
	// Worktree is the absolute host path of the run's worktree.
	Worktree string
	// GitDir is the absolute host path of the private repository. Isolating providers show it at the same path,
	// writable, and put a .git file that points to it in the place of the worktree's own, so that the file can be
	// neither removed nor replaced inside; those with Copy files make the repository itself the worktree's .git. Providers
	// with InPlace files ignore it.
	GitDir string
	// Env is the environment ("K=V") that commands see in addition to the provider's own base.
	Env []string
	// RequireIsolation makes Open fail on a provider that does not isolate.
	RequireIsolation bool

	// The rest is for providers that isolate; those with InPlace files ignore it.

	// Objects are absolute host paths of object folders that the private repository borrows from. They are shown
	// read-only at the same paths.
	Objects []string
	// Pack is for providers with Copy files, in the place of Objects: the host path, without its suffix, of a git pack
	// (".pack") and its index (".idx") with everything that the private repository borrows.
	Pack string
	// Egress is the host path of the unix socket of ralph's egress proxy for this run (package sandboxes/egress). The
	// provider makes it the only way out. Empty: no network at all.
	Egress string
	// Mounts are the user's own.
	Mounts []Mount
	Limits Limits
}

// Limits bound what one sandbox may use; zero means the provider's default, which is never "no limit".
type Limits struct {
	Memory int64   // bytes; default 4 GiB
	CPUs   float64 // default 2
	PIDs   int     // processes and threads; default 1024
	Disk   int64   // bytes of scratch space (/tmp, home); default 2 GiB
}

// Provider makes sandboxes. Implementations are safe for concurrent use.
type Provider interface {
	// Name is the name users write in flags and configuration.
	Name() string
	// Capabilities is constant for one provider value.
	Capabilities() Capabilities
	// Check reports whether the provider can be used on this host now. The error is one line that says what is
	// missing and the command that mends it.
	Check(ctx context.Context) error
	// Open makes a sandbox. It returns only when commands can run in it, or with an error and nothing left behind.
	Open(ctx context.Context, spec Spec) (Sandbox, error)
}

// Reaper is implemented by providers that can find and end what a crashed ralph left behind.
type Reaper interface {
	// Reap ends everything marked with the run id, and returns when it is gone. It is not an error if nothing is left.
	Reap(ctx context.Context, run string) error
}

// Sandbox is one run's boundary. Exec may be called from several goroutines.
type Sandbox interface {
	// Workdir is the absolute path of the worktree as commands inside see it.
	Workdir() string
	// Exec runs one command to its end and kills everything it started.
	//
	// The two returns are different facts. A nil error means that the command ran and the Exit is how it ended,
	// whatever that was. An error means that it is not known to have run to its end: it could not be started
	// (*StartError), the sandbox is closed (ErrClosed) or broken, or ctx ended (context.Cause(ctx)).
	//
	// When cmd.Interrupt closes, the command is asked to end (SIGTERM), and killed after cmd.Grace; Exec then returns
	// the Exit. When ctx ends, the whole tree is killed at once. In every case Exec returns only when no process of
	// the tree is left and no writer will be called again.
	Exec(ctx context.Context, cmd Command) (Exit, error)
	// Close ends everything still running and frees the sandbox. It is idempotent and safe during Exec, which then
	// returns. It never deletes the worktree.
	Close(ctx context.Context) error
}

// Noticer is implemented by sandboxes that know what no [Exit] tells, such as that a limit has cost a process its life, and
// its command has gone on without it.
type Noticer interface {
	// Notices says what happened, each in one line for people. It is complete after Close.
	Notices() []string
}

// Refuser is implemented by sandboxes with OwnEgress that know what their policy has let nobody through to.
type Refuser interface {
	// Refused gives the refusals, the most frequent first, and how many there were besides. It is complete after Close.
	Refused() (list []Refusal, more int)
}

// Refusal is a connection that was not let out, however often it was tried. All of it may be shown.
type Refusal struct {
	Where  string // the host, with its port where that is known
	Reason string // a few words
	Count  int
}

// Copier is implemented by sandboxes with Copy files.
type Copier interface {
	// Left says, in one line, what of the sandbox's files was refused when they were last copied back: what is too much, no
	// plain file, or leads out of its folder. Empty: nothing was.
	Left() string
}

// Keeper is implemented by sandboxes whose commands write to folders of this host that have no limit of their own, besides
// the worktree and the private repository.
type Keeper interface {
	// Keeps are these folders.
	Keeps() []string
}

// Command is one program to run inside.
type Command struct {
	// Argv is the program and its arguments; it is never passed through a shell.
	Argv []string
	// Dir is the working directory inside; empty means Workdir.
	Dir string
	// Env is added to the sandbox's environment; later entries win.
	Env []string
	// Stdin is read to its end; nil is empty. A command that ends without reading it is not an error.
	Stdin io.Reader
	// Stdout and Stderr receive what the command writes, each from one goroutine at a time; nil discards. A writer's
	// error stops the copying, not the command.
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

// OK reports a regular exit with status 0.
func (e Exit) OK() bool { return e.Code == 0 && e.Signal == "" }

// StartError says that a command could not be started at all.
type StartError struct {
	Argv0 string
	Err   error
}

func (e *StartError) Error() string { return "start " + e.Argv0 + ": " + e.Err.Error() }

// Unwrap gives the cause, such as exec.ErrNotFound.
func (e *StartError) Unwrap() error { return e.Err }
