package sandboxes

import "context"

// Reaper is implemented by providers that can find and end the remains of a crashed ralph. Every provider needs it whose
// commands outlive this process.
type Reaper interface {
	// Reap ends and removes everything marked with the run id, files on the sandbox's own disk included, and returns when
	// it is gone. It is not an error if nothing is left.
	Reap(ctx context.Context, run string) error
}

// Starter is implemented by providers whose sandboxes need a process that takes a while to start.
type Starter interface {
	// Start starts the process for the next sandbox of a run, while the caller makes what its [Spec] shows. The process knows
	// nothing of the Spec. done ends it unless Open has taken it.
	Start(run string) (done func())
}

// Layerer is implemented by providers that can show a worktree over a lower folder; see Spec.Lower.
type Layerer interface {
	// Layers tries it for worktrees on the file system of a host folder, in which it makes temporary files. The error says why
	// it does not work.
	Layers(ctx context.Context, dir string) error
}

// DiskKeeper is implemented by sandboxes that may have a disk of their own.
type DiskKeeper interface {
	// KeepDisk has Close leave the disk to the next sandbox of the run: no other command runs in this one. Reap removes it. show
	// is a command line that shows a person its files; empty: there is no disk.
	KeepDisk() (show string)
}

// Differ is implemented by sandboxes of a [Layerer].
type Differ interface {
	// Changes is the absolute path inside of a read-only folder with what is in the Spec's Worktree alone, without Lower and
	// Setup: everything that has come or changed, and a character device for each name that is gone. A folder may cover the one
	// below. Empty: there is none.
	Changes() string
}

// Noticer is implemented by sandboxes that know more than an [Exit] says, such as that a process of a command was killed at
// a limit although the command went on.
type Noticer interface {
	// Notices says what happened. It is complete after Close.
	Notices() []Notice
}

// Refuser is implemented by sandboxes with OwnEgress that know which connections their policy refused.
type Refuser interface {
	// Refused gives the refusals, the most frequent first, and how many more there were. It is complete after Close.
	Refused() (list []Refusal, more int)
}

// Refusal is a refused connection, however often it was tried. All of it may be shown.
type Refusal struct {
	Host   string
	Port   int    // 0: not known
	Reason string // a few words
	Count  int
}

// Keeper is implemented by sandboxes whose commands write to folders of this host that have no limit of their own, besides
// the worktree and the private repository.
type Keeper interface {
	// Keeps are these folders.
	Keeps() []string
}

// HomeKeyer is implemented by providers with Home whose sandboxes cannot share each home, such as those of different images.
type HomeKeyer interface {
	// HomeKey is the same for sandboxes that can share a home. Empty: they cannot fill one.
	HomeKey(ctx context.Context) (string, error)
}

// Cold is implemented by sandboxes that may start with an empty home although the [Spec] has one.
type Cold interface {
	// Cold says why it did; empty: it did not.
	Cold() string
}

// Prefixer is implemented by sandboxes that a program of the host can enter by a command line of its own.
type Prefixer interface {
	// CommandPrefix returns the words to put before a command's argv to run it inside, such as docker exec and its
	// arguments. A command that is started in this way ends with the sandbox at the latest.
	CommandPrefix() ([]string, error)
}

// NoticesOf gives the notices of a sandbox that has any.
func NoticesOf(s Sandbox) []Notice {
	if n, ok := As[Noticer](s); ok {
		return n.Notices()
	}
	return nil
}
