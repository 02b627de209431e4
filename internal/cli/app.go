package cli

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

// app is what the commands of one command line share.
type app struct {
	host     Host
	ui       *screen.Printer
	trackers tracker.Registry
	// hard ends only when everything has to stop at once; a command's own context ends at the first Ctrl-C.
	hard context.Context //nolint:containedctx // it spans the command line, like app itself

	// Set by the global flags.
	repo    string
	color   string
	quiet   bool
	verbose bool
	helpAll bool
	// Set by --json of the commands that have it.
	json bool

	choose    map[string][]string    // by choices
	project   *config.Project        // of a service; nil: there is none
	clock     func() time.Time       // by which claims expire; nil: this machine's
	untrusted *config.UntrustedError // what the configuration has been loaded without; nil: nothing
}

func newApp(h Host) *app {
	return &app{host: h, ui: screen.New(h.Stdout, h.Stderr, h.Env), trackers: tracker.NewRegistry(append(trackerKinds(), h.Trackers...)...), color: "auto"}
}

// softly returns the context commands run under by default.
func (a *app) softly(hard context.Context) (context.Context, context.CancelFunc) {
	a.hard = hard
	return endedBy(hard, a.host.Interrupt, exit.ErrInterrupted)
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

// noteStopping tells people who ask ralph to stop that it does, while agents come to their end, and what ends them at
// once. The function it returns is for when there is nothing to wait for any more.
func (a *app) noteStopping(ctx context.Context, grace time.Duration) (done func()) {
	said := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(said)
		if errors.Is(context.Cause(ctx), exit.ErrInterrupted) {
			a.ui.Note("stopping: agents have %s to end, and what they have committed is kept; once more kills them", screen.Age(grace))
		}
	})
	return func() {
		if !stop() {
			<-said
		}
	}
}

// whileRead returns a context that also ends when nobody reads standard output any more, for what may print for ever.
func (a *app) whileRead(ctx context.Context) (context.Context, context.CancelFunc) {
	return endedBy(ctx, a.ui.Out.Unread, nil)
}

// dir is where the command is to look for the repository.
func (a *app) dir() string { return a.path(a.repo) }

// path is a file named on the command line.
func (a *app) path(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(a.host.Dir, name)
}

// checkRepo refuses a --repo that is no folder.
func (a *app) checkRepo() error {
	info, err := os.Stat(a.dir())
	switch {
	case a.repo == "":
		return nil
	case errors.Is(err, os.ErrNotExist):
		return exit.Usagef("--repo: %s does not exist", a.dir())
	case err != nil:
		return exit.Usagef("--repo: %v", err)
	case !info.IsDir():
		return exit.Usagef("--repo: %s is not a folder", a.dir())
	}
	return nil
}

// config loads the configuration for the command's flags. Outside a repository there is no repository file.
func (a *app) config(cmd *cobra.Command) (*config.Loaded, error) {
	if err := a.checkRepo(); err != nil {
		return nil, err
	}
	top, err := a.top(cmd.Context())
	if err != nil {
		if a.repo != "" || cmd.Context().Err() != nil || errors.Is(err, errLeftOut) {
			return nil, err
		}
		top = ""
		a.ui.Note("only your own configuration is read: %s", screen.CleanLine(err.Error()))
	}
	return a.load(cmd, top)
}

func (a *app) load(cmd *cobra.Command, top string) (*config.Loaded, error) {
	sources := a.sources(cmd.Flags(), top)
	sources.Looks = looks(cmd)
	loaded, err := config.Load(sources)
	if err != nil {
		return nil, err
	}
	a.untrusted = loaded.Untrusted
	if a.untrusted != nil && cmd.Name() != "doctor" { // which has a line for it
		a.ui.Warn(a.untrusted.What() + "; this command goes on without; read and accept it with: " + a.untrusted.Command)
	}
	for _, w := range loaded.Warnings {
		a.ui.Warn(w)
	}
	return loaded, nil
}

// sources are the places that the configuration of the checkout at top is read from.
func (a *app) sources(flags *pflag.FlagSet, top string) config.Sources {
	return config.Sources{
		Flags: flags, Environ: a.host.Env, Dir: a.host.Dir, Repo: top, Project: a.project, Choices: a.choices(), Commanded: a.commanded(),
		Trusted: func() (trust.Values, error) {
			store, err := a.trustStore()
			if err != nil {
				return nil, err
			}
			return store.Trusted(top)
		},
	}
}

// getenv looks a variable up in the host's environment; the last of several wins.
func (h Host) getenv(name string) string { return config.Getenv(h.Env, name) }

// stateDir is the folder that holds the state of all repositories.
func (a *app) stateDir(c config.Config) (string, error) {
	if c.StateDir != "" {
		return c.StateDir, nil
	}
	if dir := a.stateHome(); dir != "" {
		return dir, nil
	}
	return "", fmt.Errorf("no place for ralph's state: HOME is not set; set it, or give --state-dir")
}

// stateHome is the usual place of ralph's state, whatever the configuration says; empty when there is no home.
func (a *app) stateHome() string {
	if dir := a.host.getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ralph")
	}
	if home := a.host.getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "ralph")
	}
	return ""
}
