// Package compose puts the parts of ralph together. [App] is what the commands of one command line share, and [Parts] what one of
// them needs of a repository: its configuration, git, journal and backlog, and the sandbox, agent and tracker that are configured.
package compose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/cli/trust"
	"github.com/ralph-pool/ralph/tracker"
)

// App is what the commands of one command line share.
type App struct {
	Host     Host             // the process; .ralph/.env adds to its environment
	UI       *screen.Printer  // all output
	Trackers tracker.Registry // the kinds to choose from
	// Hard ends only when everything has to stop at once; a command's own context ends at the first Ctrl-C.
	Hard context.Context //nolint:containedctx // it spans the command line, like App itself

	// Set by the global flags.
	Repo    string
	Color   string
	HelpAll bool
	// Set by --json of the commands that have it.
	JSON bool

	// What the linker stated of this program; empty: nothing.
	Version, Commit string

	Project   *config.Project        // of a service; nil: there is none
	Clock     func() time.Time       // by which claims expire; nil: this machine's
	Untrusted *config.UntrustedError // what the configuration has been loaded without; nil: nothing

	choices map[string][]string // of Choices, made once
}

// New is a command line in a process.
func New(h Host) *App {
	return &App{
		Host:     h,
		UI:       screen.New(h.Stdout, h.Stderr, h.Env),
		Trackers: tracker.NewRegistry(append(trackerKinds(), h.Trackers...)...),
		Color:    "auto",
	}
}

// Softly returns the context commands run under by default.
func (a *App) Softly(hard context.Context) (context.Context, context.CancelFunc) {
	a.Hard = hard
	return endedBy(hard, a.Host.Interrupt, exit.ErrInterrupted)
}

// endedBy returns a context that also ends when the channel is closed, with that cause. The function frees what it takes.
func endedBy(ctx context.Context, closed <-chan struct{}, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-closed:
			cancel(cause)
		case <-done:
		}
	}()
	return ctx, func() {
		close(done)
		<-ended
		cancel(nil)
	}
}

// NoteStopping tells people who ask ralph to stop that it does, while agents come to their end, and what ends them at
// once. The function it returns is for when there is nothing to wait for any more.
func (a *App) NoteStopping(ctx context.Context, grace time.Duration) (done func()) {
	said := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(said)
		if errors.Is(context.Cause(ctx), exit.ErrInterrupted) {
			a.UI.Note("stopping: agents have %s to end, and what they have committed is kept; once more kills them", screen.Age(grace))
		}
	})
	return func() {
		if !stop() {
			<-said
		}
	}
}

// WhileRead returns a context that also ends when nobody reads standard output any more, for what may print for ever.
func (a *App) WhileRead(ctx context.Context) (context.Context, context.CancelFunc) {
	return endedBy(ctx, a.UI.Out.Unread, nil)
}

// Dir is where the command is to look for the repository.
func (a *App) Dir() string { return a.Path(a.Repo) }

// Path is a file named on the command line.
func (a *App) Path(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(a.Host.Dir, name)
}

// CheckRepo refuses a --repo that is no folder.
func (a *App) CheckRepo() error {
	info, err := os.Stat(a.Dir())
	switch {
	case a.Repo == "":
		return nil
	case errors.Is(err, os.ErrNotExist):
		return exit.Usagef("--repo: %s does not exist", a.Dir())
	case err != nil:
		return exit.Usagef("--repo: %v", err)
	case !info.IsDir():
		return exit.Usagef("--repo: %s is not a folder", a.Dir())
	}
	return nil
}

// Config loads the configuration for the command's flags. Outside a repository there is no repository file.
func (a *App) Config(cmd *cobra.Command) (*config.Loaded, error) {
	if err := a.CheckRepo(); err != nil {
		return nil, err
	}
	top, err := a.Top(cmd.Context())
	if err != nil {
		if a.Repo != "" || cmd.Context().Err() != nil || errors.Is(err, errLeftOut) {
			return nil, err
		}
		top = ""
		a.UI.Note("only your own configuration is read: %s", screen.CleanLine(err.Error()))
	}
	return a.load(cmd, top)
}

func (a *App) load(cmd *cobra.Command, top string) (*config.Loaded, error) {
	sources := a.Sources(cmd.Flags(), top)
	sources.Looks = marked(cmd, Looks)
	loaded, err := config.Load(sources)
	if err != nil {
		return nil, err
	}
	a.Untrusted = loaded.Untrusted
	if a.Untrusted != nil && !marked(cmd, SaysUntrusted) {
		a.UI.Warn(a.Untrusted.What() + "; this command goes on without; read and accept it with: " + a.Untrusted.Command)
	}
	for _, w := range loaded.Warnings {
		a.UI.Warn(w)
	}
	return loaded, nil
}

// Sources are the places that the configuration of the checkout at top is read from.
func (a *App) Sources(flags *pflag.FlagSet, top string) config.Sources {
	return config.Sources{
		Flags: flags, Environ: a.Host.Env, Dir: a.Host.Dir, Repo: top, Project: a.Project, Choices: a.Choices(), Commanded: a.Commanded(),
		Trusted: func() (trust.Values, error) {
			store, err := a.TrustStore()
			if err != nil {
				return nil, err
			}
			return store.Trusted(top)
		},
	}
}

// StateDir is the folder that holds the state of all repositories.
func (a *App) StateDir(c config.Config) (string, error) {
	if c.StateDir != "" {
		return c.StateDir, nil
	}
	if dir := a.stateHome(); dir != "" {
		return dir, nil
	}
	return "", fmt.Errorf("no place for ralph's state: HOME is no absolute path; set it or XDG_STATE_HOME, or give --state-dir")
}

// stateHome is the usual place of ralph's state, whatever the configuration says; empty when there is no home.
func (a *App) stateHome() string {
	if dir := a.Host.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ralph")
	}
	if home := a.Host.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "ralph")
	}
	return ""
}

// TrustStore is where the user's consents are. It is no folder that a configuration names: a repository could name one of
// its own.
func (a *App) TrustStore() (trust.Store, error) {
	state := a.stateHome()
	if state == "" {
		return trust.Store{}, exit.Usagef("no place for what you accept: HOME is no absolute path; " +
			"set it or XDG_STATE_HOME, or RALPH_TRUST to a hash")
	}
	return trust.Store{Dir: filepath.Join(state, "trust")}, nil
}
