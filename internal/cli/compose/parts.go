package compose

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/leak"
	"github.com/ralph-pool/ralph/pool/journal/sqlite"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/base"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Parts is what a command that works on a repository needs. It belongs to one command; Close ends it.
type Parts struct {
	config.Config                // what is configured
	Loaded        *config.Loaded // and where each value comes from
	place         worktree.Location
	Top, State    string // folders: the checkout's, and that of what ralph keeps of the repository
	Repo          *worktree.Repo
	Journal       *sqlite.Store
	Backlog       tracker.Tracker // nil for a command that asked for the repository alone
	Log           *slog.Logger    // without secrets
	Secrets       *redact.Secrets // of this host: what is obtained on the way is added
	passedOver    string          // the tracker "local" where "auto" has taken a forge beside its folder; else empty
	taken         string          // the tracker that it took instead
	looks         bool            // nothing is run in the sandbox
	warned        bool            // it was said what the sandbox has no means for
	clock         func() time.Time
}

// Open loads the configuration and opens the repository, its journal and its backlog.
func (a *App) Open(cmd *cobra.Command) (*Parts, error) {
	p, err := a.OpenRepo(cmd)
	if err != nil {
		return nil, err
	}
	if err := p.UseRemote(cmd.Context()); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if p.Backlog, err = a.Tracker(cmd.Context(), p); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if err := a.Authorize(cmd.Context(), p); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// OpenRepo loads the configuration and opens the repository and its journal. Claims are this machine's own.
func (a *App) OpenRepo(cmd *cobra.Command) (*Parts, error) {
	if err := a.CheckRepo(); err != nil {
		return nil, err
	}
	ctx := cmd.Context()
	place, err := a.locate(ctx)
	if err != nil {
		return nil, err
	}
	top := place.Top
	loaded, err := a.load(cmd, top)
	if err != nil {
		return nil, err
	}
	state, err := a.StateDir(loaded.Config)
	if err != nil {
		return nil, err
	}
	p := &Parts{Config: loaded.Config, Loaded: loaded, place: place, Top: top, Secrets: redact.New(), clock: a.Clock}
	if p.State, err = worktree.StateDir(ctx, state, place); err != nil {
		return nil, err
	}
	p.Log = slog.New(zerolog.NewSlogHandler(a.Logger(loaded.Config, marked(cmd, Serves), p.Secrets.Log(a.UI.Err))))
	if p.Repo, err = worktree.Open(ctx, top, p.Repository()); err != nil {
		return nil, err
	}
	if err := a.dotEnv(ctx, top, p.Repo, p.Config); err != nil {
		return nil, err
	}
	if p.Journal, err = sqlite.Open(ctx, p.JournalFile(), p.Log); err != nil {
		return nil, err
	}
	return p, nil
}

// JournalFile is the file of the journal.
func (p *Parts) JournalFile() string { return journalFile(p.State) }

func journalFile(state string) string { return filepath.Join(state, "state.db") }

// hostDir is shared by all clones of this user.
func (p *Parts) hostDir() string { return filepath.Join(filepath.Dir(p.State), "left") }

// Repository is how the repository is opened for this machine alone.
func (p *Parts) Repository() worktree.Options {
	return worktree.Options{
		StateDir: p.State, Location: p.place, Private: []string{DotEnvFile}, Now: p.clock, Log: p.Log,
		Layers: layerBytes(p.Config), MinFree: MinFree(p.Config),
	}
}

// UseRemote opens the repository again with the remote that holds claims, where there is one.
func (p *Parts) UseRemote(ctx context.Context) error {
	options := p.Repository()
	options.HostDir, options.Remote = p.hostDir(), p.Remote
	switch p.Remote {
	case "none":
		return nil
	case "auto":
		options.Remote = "origin"
		has, err := p.Repo.Git().HasRemote(ctx, options.Remote)
		if err != nil || !has {
			return err
		}
	}
	repo, err := worktree.Open(ctx, p.Top, options)
	if err != nil {
		return err
	}
	p.Repo = repo
	return nil
}

// Wrong is the error of a setting that only the machine can tell to be wrong. It says where the value comes from.
func (p *Parts) Wrong(key string, err error) error {
	return &exit.Error{Status: exit.Usage, Err: fmt.Errorf("%s: %w", p.Loaded.Origin(key).Name(key), err)}
}

// FindBase is the branch, tag or commit that runs begin at.
func (p *Parts) FindBase(ctx context.Context) (worktree.Base, error) {
	at, err := p.Repo.Base(ctx, p.Base)
	switch {
	case err == nil:
		return at, nil
	case p.Base == "":
		return at, &exit.Error{Status: exit.Usage, Err: err}
	}
	return at, p.Wrong("base", err)
}

// ForeignBase is the base, for a command that gives it commits or judges by it what may be removed.
func (p *Parts) ForeignBase(ctx context.Context) (worktree.Base, error) {
	b, err := p.FindBase(ctx)
	if err != nil {
		return b, err
	}
	if err := base.Foreign(b, p.Base, p.BranchPrefix); err != nil {
		return b, &exit.Error{Status: exit.Usage, Err: err}
	}
	return b, nil
}

// NeedsBranch refuses a base that is no local branch, for what gives it commits.
func NeedsBranch(b worktree.Base, what string) error {
	if strings.HasPrefix(b.Ref, git.Heads) {
		return nil
	}
	return exit.Usagef("%s needs a local branch as base, but %s is not one; set --base BRANCH", what, b.Name)
}

// Startable refuses a repository without a commit, which a job could not start from.
func (p *Parts) Startable(ctx context.Context) error {
	_, err := p.Repo.Base(ctx, "")
	if err == nil {
		return nil
	}
	if _, herr := p.Repo.Base(ctx, "HEAD"); herr == nil { // a detached head will do
		return nil
	}
	return &exit.Error{Status: exit.Usage, Err: err}
}

// Close ends what was opened.
func (p *Parts) Close() (err error) {
	if t, ok := tracker.As[io.Closer](p.Backlog); ok {
		err = t.Close()
	}
	if p.Journal != nil {
		err = errors.Join(err, p.Journal.Close())
	}
	return err
}

// Secrets are the values of the environment whose names say that they are none of anybody's business, and the logins of
// all agents that the user has: whichever works may find those of the others. A word that somebody has taken as a password stands in
// ordinary text, too, and the path of a file with a secret is none.
func (a *App) Secrets(passed []string, user agents.User) []string {
	var values []string
	for _, kv := range append(slices.Clone(a.Host.Env), passed...) {
		name, value, _ := strings.Cut(kv, "=")
		if leak.SecretName(name) && !leak.Word(value) && !isFile(value) {
			values = append(values, value)
		}
	}
	return append(values, agents.Secrets(user, a.Agents().All()...)...)
}

func isFile(path string) bool {
	_, err := os.Stat(path)
	return filepath.IsAbs(path) && err == nil
}

// AgentEnv resolves agent-env: a bare NAME passes the host's variable on.
func (a *App) AgentEnv(list []string) ([]string, error) {
	var env []string
	for _, item := range list {
		if !strings.Contains(item, "=") {
			value := a.Host.Getenv(item)
			if value == "" {
				return nil, exit.Usagef("agent-env: %s is not set on this host; set it, or take it off the list", item)
			}
			item += "=" + value
		}
		env = append(env, item)
	}
	return env, nil
}

// AssumeNone chooses a sandbox for a command that only looks.
func (p *Parts) AssumeNone() { p.Sandbox, p.looks = "none", true }

// PreferNone does the same where nobody has named a sandbox.
func (p *Parts) PreferNone() {
	if p.Sandbox == "auto" {
		p.AssumeNone()
	}
}

// Logger writes for operators. A service without a terminal has programs that read its log; what stands among the lines of other
// commands, people read.
func (a *App) Logger(c config.Config, service bool, to io.Writer) zerolog.Logger {
	level, err := zerolog.ParseLevel(c.LogLevel)
	if err != nil {
		level = zerolog.WarnLevel
	}
	if !a.LogsJSON(c, service) {
		to = zerolog.ConsoleWriter{Out: to, NoColor: !a.UI.ErrColor, TimeFormat: time.TimeOnly}
	}
	return zerolog.New(to).Level(level)
}

// LogsJSON reports that programs read the log.
func (a *App) LogsJSON(c config.Config, service bool) bool {
	return c.LogFormat == "json" || c.LogFormat == "auto" && service && !screen.IsTerminal(a.Host.Stderr)
}

// Choices are the names that the registries know, by configuration key.
func (a *App) Choices() map[string][]string {
	if a.choices != nil {
		return a.choices
	}
	var efforts, modes []string
	for _, agent := range a.Agents().All() {
		d := agent.Describe()
		efforts, modes = Union(efforts, d.Efforts), Union(modes, d.Modes)
	}
	a.choices = map[string][]string{
		"tracker": append([]string{"auto"}, a.Trackers.Names()...),
		"sandbox": append([]string{"auto"}, sandboxNames()...),
		"agent":   a.Agents().Names(), "effort": efforts, "permission-mode": modes,
	}
	return a.choices
}
