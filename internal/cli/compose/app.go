// Package compose builds the parts of ralph from the configuration. [App] holds what all commands of one command line share: the
// host, the output and the global flags. [Parts] holds what a command needs for one repository: its configuration, git, journal
// and backlog, from which it makes sandbox, agents and tracker.
package compose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/cli/trust"
	"github.com/ralph-pool/ralph/tracker"
)

// App holds what the commands of one command line share.
type App struct {
	Host     Host             // the process; .ralph/.env adds to its environment
	UI       *screen.Printer  // for all output
	Trackers tracker.Registry // the known kinds of trackers
	// Hard is canceled when everything must stop at once. A command's own context ends earlier, at the first Ctrl-C.
	Hard context.Context //nolint:containedctx // it spans the command line, like App itself

	// Set by the global flags.
	Repo    string
	Color   string
	HelpAll bool
	// Set by --json, in commands that have it.
	JSON bool

	// Set by the linker; empty when it set nothing.
	Version, Commit string

	Project   *config.Project        // the project, in a service; else nil
	Clock     func() time.Time       // the clock by which claims expire; nil: this machine's
	Untrusted *config.UntrustedError // values that were left out because the repository is not trusted; nil: none

	choices map[string][]string // caches the result of Choices
}

// New returns the App of one command line.
func New(h Host) *App {
	return &App{
		Host:     h,
		UI:       screen.New(h.Stdout, h.Stderr, h.Env),
		Trackers: tracker.NewRegistry(append(trackerKinds(), h.Trackers...)...),
		Color:    "auto",
	}
}

// Softly returns the context under which commands run: it also ends when the user asks ralph to stop.
func (a *App) Softly(hard context.Context) (context.Context, context.CancelFunc) {
	a.Hard = hard
	return endedBy(hard, a.Host.Interrupt, exit.ErrInterrupted)
}

// endedBy returns a context that closing the channel also cancels, with the cause. The function releases its resources.
func endedBy(ctx context.Context, closed <-chan struct{}, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-closed:
			cancel(cause)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		watching.Wait()
	}
}

// NoteStopping prints a note when the user's request to stop ends ctx: how long agents may still take, and how to kill them at
// once. Call done when there is nothing left to wait for.
func (a *App) NoteStopping(ctx context.Context, grace time.Duration) (done func()) {
	said := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(said)
		if errors.Is(context.Cause(ctx), exit.ErrInterrupted) {
			a.UI.Note("stopping: agents get %s to end, and their commits are kept; a second Ctrl-C kills them", screen.Age(grace))
		}
	})
	return func() {
		if !stop() {
			<-said
		}
	}
}

// WhileRead returns a context that also ends when standard output has no reader any more. It is for output without an end.
func (a *App) WhileRead(ctx context.Context) (context.Context, context.CancelFunc) {
	return endedBy(ctx, a.UI.Out.Unread, nil)
}

// Dir is the folder from which the command looks for the repository.
func (a *App) Dir() string { return a.Path(a.Repo) }

// Path makes a path from the command line absolute.
func (a *App) Path(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(a.Host.Dir, name)
}

// CheckRepo refuses a --repo that is not a folder.
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

// Config loads the configuration for the command's flags. Outside of a repository it skips the repository's file.
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
		a.UI.Warn(a.Untrusted.What() + "; this command ignores it; read and accept it with: " + a.Untrusted.Command)
	}
	for _, w := range loaded.Warnings {
		a.UI.Warn(w)
	}
	return loaded, nil
}

// Sources returns the sources of the configuration for the checkout at top.
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

// StateDir returns the folder with the state of all repositories.
func (a *App) StateDir(c config.Config) (string, error) {
	if c.StateDir != "" {
		return c.StateDir, nil
	}
	if dir := a.stateHome(); dir != "" {
		return dir, nil
	}
	return "", fmt.Errorf("no folder for ralph's state: HOME is not an absolute path; set HOME or XDG_STATE_HOME, or give --state-dir")
}

// stateHome returns the default folder of ralph's state, or "" without a home. It ignores the configuration.
func (a *App) stateHome() string {
	if dir := a.Host.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ralph")
	}
	if home := a.Host.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "ralph")
	}
	return ""
}

// TrustStore returns the store of what the user has accepted. No configuration can move it: a repository could name its own.
func (a *App) TrustStore() (trust.Store, error) {
	state := a.stateHome()
	if state == "" {
		return trust.Store{}, exit.Usagef("no folder to store your consent in: HOME is not an absolute path; " +
			"set HOME or XDG_STATE_HOME, or set RALPH_TRUST to a hash")
	}
	return trust.Store{Dir: filepath.Join(state, "trust")}, nil
}
