package sandboxes

import "context"

// As returns x as a T if x, or a provider or sandbox that x decorates, is a T (usually an optional interface). A decorator
// has a method Unwrap() Provider or Unwrap() Sandbox.
func As[T any](x any) (T, bool) {
	for {
		if found, ok := x.(T); ok {
			return found, true
		}
		switch decorator := x.(type) {
		case interface{ Unwrap() Provider }:
			x = decorator.Unwrap()
		case interface{ Unwrap() Sandbox }:
			x = decorator.Unwrap()
		default:
			var none T
			return none, false
		}
	}
}

// Reaper is implemented by providers that can find and end what a crashed ralph left. Every provider whose commands can
// outlive this process must implement it.
type Reaper interface {
	// Reap ends and removes everything that is marked with the run id, including files on the sandbox's own disk. It
	// returns when all is gone. It is not an error if nothing is left.
	Reap(ctx context.Context, run string) error
}

// Starter is implemented by providers whose sandboxes need a process that is slow to start.
type Starter interface {
	// Start starts the process for the next sandbox of a run, while the caller prepares the folders of the [Spec]. The
	// process knows nothing of the Spec. done ends the process unless Open has taken it over.
	Start(run string) (done func())
}

// Layerer is implemented by providers that can show a worktree over a lower folder; see Spec.Lower.
type Layerer interface {
	// Layers tests whether layers work for worktrees on the file system of the host folder dir, where it creates temporary
	// files. The error explains why they do not.
	Layers(ctx context.Context, dir string) error
}

// DiskKeeper is implemented by sandboxes that may have a disk of their own.
type DiskKeeper interface {
	// KeepDisk makes Close keep the disk for the next sandbox of the run. After it, no other command runs in this sandbox.
	// Reap removes the disk. show is a command line with which a person can list the files of the disk; empty: there is no
	// disk.
	KeepDisk() (show string)
}

// Differ is implemented by sandboxes of a [Layerer].
type Differ interface {
	// Changes returns the absolute path inside of a read-only folder with the files of the Spec's Worktree alone, without
	// Lower and Setup: every new or changed file, and a character device for each deleted name. A folder there may be
	// opaque: it hides the lower folder of that name. Empty: there is no such folder.
	Changes() string
}

// Noticer is implemented by sandboxes that report more than an [Exit] can: for example, that a limit killed a process of a
// command although the command went on.
type Noticer interface {
	// Notices returns the notices so far. The list is complete after Close.
	Notices() []Notice
}

// RefusalReporter is implemented by sandboxes with OwnEgress that know which connections their policy refused.
type RefusalReporter interface {
	// Refusals returns the refused connections, the most frequent first, and the number of those left out. It is complete
	// after Close.
	Refusals() (list []Refusal, more int)
}

// Refusal counts the refused attempts at one connection. All fields may be shown to people.
type Refusal struct {
	Host   string
	Port   int    // 0: unknown
	Reason string // a few words
	Count  int
}

// HostWriter is implemented by sandboxes whose commands can write to host folders without a size limit, other than the worktree
// and the private repository.
type HostWriter interface {
	// HostFolders returns these folders.
	HostFolders() []string
}

// HomeKeyer is implemented by providers with Home whose sandboxes cannot all share a home, for example with different
// images.
type HomeKeyer interface {
	// HomeKey returns the same key for sandboxes that can share a home. Empty: they cannot fill a home.
	HomeKey(ctx context.Context) (string, error)
}

// HomeReporter is implemented by sandboxes that may start with an empty home although the [Spec] has one.
type HomeReporter interface {
	// EmptyHomeReason returns the reason for the empty home; empty: the home of the Spec was used.
	EmptyHomeReason() string
}

// Prefixer is implemented by sandboxes that a host program can enter with a command line.
type Prefixer interface {
	// CommandPrefix returns the words to put before a command's argv to run it inside, such as docker exec and its
	// arguments. Such a command ends with the sandbox at the latest.
	CommandPrefix() ([]string, error)
}

// NoticesOf returns the notices of a sandbox, or nil if it is not a [Noticer].
func NoticesOf(s Sandbox) []Notice {
	if n, ok := As[Noticer](s); ok {
		return n.Notices()
	}
	return nil
}
