package compose

import (
	"context"
	"errors"
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

// Parts holds what a command needs for one repository. It belongs to one command, which must call Close.
type Parts struct {
	config.Config                // the values
	Loaded        *config.Loaded // their origins
	place         worktree.Location
	Top, State    string // folders: of the checkout, and of ralph's state of the repository
	Repo          *worktree.Repo
	Journal       *sqlite.Store
	Backlog       tracker.Tracker // nil after OpenRepo
	Log           *slog.Logger    // redacts secrets
	Secrets       *redact.Secrets // of this host; those found later are added
	passedOver    string          // "local", if "auto" chose a forge although its folder exists; else empty
	taken         string          // the forge that "auto" chose then
	looks         bool            // the command runs nothing in the sandbox
	reads         bool            // the command writes nothing
	warned        bool            // the warnings of Unmet were printed
	clock         func() time.Time
	watch         func(remote string) (end func()) // see worktree.Options
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

// OpenRepo loads the configuration and opens the repository and its journal, without remote and backlog. Claims stay local.
func (a *App) OpenRepo(cmd *cobra.Command) (*Parts, error) {
	if err := a.CheckRepo(); err != nil {
		return nil, err
	}
	ctx := cmd.Context()
	place, err := a.locate(ctx)
	if err != nil {
		return nil, err
	}
	loaded, err := a.load(cmd, place.Top)
	if err != nil {
		return nil, err
	}
	state, err := a.StateDir(loaded.Config)
	if err != nil {
		return nil, err
	}
	p := &Parts{Config: loaded.Config, Loaded: loaded, place: place, Top: place.Top, Secrets: redact.New(), clock: a.Clock, reads: marked(cmd, Reads)}
	if p.State, err = worktree.StateDir(ctx, state, place); err != nil {
		return nil, err
	}
	p.Log = slog.New(zerolog.NewSlogHandler(a.Logger(loaded.Config, marked(cmd, Serves), p.Secrets.Log(a.UI.Err))))
	if a.Project != nil { // one of several whose lines are in one log
		p.Log = p.Log.With("project", a.Project.Name)
	}
	if marked(cmd, Waits) {
		p.watch = a.UI.NoteWaits(a.Host.Patience)
	}
	if p.Repo, err = worktree.Open(ctx, p.Top, p.Repository()); err != nil {
		return nil, err
	}
	if err := a.dotEnv(ctx, p.Top, p.Repo, p.Config); err != nil {
		return nil, err
	}
	open := sqlite.Open
	if p.reads {
		open = sqlite.OpenToRead
	}
	if p.Journal, err = open(ctx, p.JournalFile(), p.Log); err != nil {
		return nil, err
	}
	return p, nil
}

// JournalFile is the path of the journal.
func (p *Parts) JournalFile() string { return journalFile(p.State) }

func journalFile(state string) string { return filepath.Join(state, "state.db") }

// hostDir is a folder that all clones of this user share.
func (p *Parts) hostDir() string { return filepath.Join(filepath.Dir(p.State), "left") }

// Repository returns the options to open the repository without a remote.
func (p *Parts) Repository() worktree.Options {
	return worktree.Options{
		StateDir: p.State, Location: p.place, Private: []string{DotEnvFile}, Now: p.clock, Log: p.Log, Reads: p.reads,
		Layers: layerBytes(p.Config), MinFree: MinFree(p.Config),
	}
}

// UseRemote opens the repository again with the remote that holds the claims, if there is one.
func (p *Parts) UseRemote(ctx context.Context) error {
	options := p.Repository()
	options.HostDir, options.Remote, options.Watch = p.hostDir(), p.Remote, p.watch
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

// Wrong returns the usage error of a setting that does not fit this machine. It names the setting's origin.
func (p *Parts) Wrong(key string, err error) error {
	return exit.Usagef("%s: %w", p.Loaded.Origin(key).Name(key), err)
}

// FindBase returns the branch, tag or commit at which runs begin.
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

// ForeignBase returns the base for commands that merge into it, or that decide by it what may be removed. It refuses a base that
// is one of ralph's own branches, unless the user named it.
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

// NeedsBranch refuses a base that is not a local branch, for operations that add commits to it.
func NeedsBranch(b worktree.Base, what string) error {
	if strings.HasPrefix(b.Ref, git.Heads) {
		return nil
	}
	return exit.Usagef("%s needs a local branch as base, but %s is not one; set --base BRANCH", what, b.Name)
}

// Startable refuses a repository without commits, from which a job cannot start.
func (p *Parts) Startable(ctx context.Context) error {
	_, err := p.Repo.Base(ctx, "")
	if err == nil {
		return nil
	}
	if _, herr := p.Repo.Base(ctx, "HEAD"); herr == nil { // a detached HEAD is enough
		return nil
	}
	return &exit.Error{Status: exit.Usage, Err: err}
}

// Close closes backlog and journal.
func (p *Parts) Close() (err error) {
	if t, ok := tracker.As[io.Closer](p.Backlog); ok {
		err = t.Close()
	}
	if p.Journal != nil {
		err = errors.Join(err, p.Journal.Close())
	}
	return err
}

// Secrets returns the values of variables with secret names, and the user's logins for all agents, because any agent may find
// those of the others. It omits paths of files, and simple words such as a password "postgres", which occur in ordinary text.
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

// AgentEnv resolves agent-env: a bare NAME takes the host's value.
func (a *App) AgentEnv(list []string) ([]string, error) {
	var env []string
	for _, item := range list {
		if !strings.Contains(item, "=") {
			value := a.Host.Getenv(item)
			if value == "" {
				return nil, exit.Usagef("agent-env: %s is not set on this host; set it, or remove it from the list", item)
			}
			item += "=" + value
		}
		env = append(env, item)
	}
	return env, nil
}

// AssumeNone selects sandbox none, for a command that runs nothing in it.
func (p *Parts) AssumeNone() { p.Sandbox, p.looks = "none", true }

// PreferNone calls AssumeNone unless the user has named a sandbox.
func (p *Parts) PreferNone() {
	if p.Sandbox == "auto" {
		p.AssumeNone()
	}
}

// Logger returns the logger for operators. It writes JSON for a service without a terminal, whose log is read by programs, and
// lines for people otherwise.
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

// LogsJSON reports whether the log is JSON.
func (a *App) LogsJSON(c config.Config, service bool) bool {
	return c.LogFormat == "json" || c.LogFormat == "auto" && service && !screen.IsTerminal(a.Host.Stderr)
}

// Choices returns the registered names by configuration key.
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
