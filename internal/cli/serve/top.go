package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/attach"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/progress"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/tui"
	"github.com/ralph-pool/ralph/worktree/git"
)

const topLong = `Show all runs of this repository on this host, live, whichever ralph process works them. With ADDRESS, or
outside a repository, show the runs of a service: HOST:PORT, http://HOST:PORT or unix:PATH (default: ` + usualListen + `).

Leaving top does not stop any run.`

// NewTop returns `ralph top`.
func NewTop(a *compose.App) *cobra.Command {
	var t top
	cmd := &cobra.Command{
		Use: "top [ADDRESS]", Short: "Watch what is being worked", Long: topLong,
		Example:     "  ralph top\n  ralph top unix:/run/ralph/api.sock\n  ralph top --plain >> runs.log",
		Annotations: compose.Marks(compose.Looks),
		GroupID:     compose.GroupLook, Args: exit.AtMostOneName("ADDRESS"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			t.App, t.cmd, t.views = a, cmd, map[string]*progress.View{}
			if len(args) > 0 {
				t.address = args[0]
				return t.run()
			}
			_, outside := a.Top(cmd.Context())
			if !errors.Is(outside, git.ErrNoRepository) || a.Repo != "" {
				return t.run()
			}
			t.address = serviceHere(a)
			err := t.run()
			if advised, ok := errors.AsType[*exit.Error](outside); ok && (errors.Is(err, attach.ErrNoService) || errors.Is(err, attach.ErrOther)) {
				advised.Hint += "; or give a service's address: " + err.Error()
				return advised
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&t.plain, "plain", false, "print plain lines, also on a terminal")
	cmd.Flags().StringVar(&t.tokenFile, "listen-token-file", "", "`file` with the token of the service")
	a.Bind(cmd, keys.ForIssue, "base")
	return cmd
}

// top is one run of `ralph top`.
type top struct {
	*compose.App
	cmd                *cobra.Command
	address, tokenFile string
	plain              bool

	source  attach.Source
	actions tui.Actions
	name    func(project, key string) string
	screen  *tui.View
	views   map[string]*progress.View // by project; only attach.Watch uses it
}

func (t *top) run() (err error) {
	ctx, cancel := t.WhileRead(t.cmd.Context())
	defer cancel()
	end, err := t.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	runs, err := t.source.Runs(ctx)
	if err != nil {
		return refused(err)
	}
	shown, hide := progress.StartView(t.App, t.plain || !screen.IsTerminal(t.Host.Stdout), "ralph top", "", t.actions)
	defer hide()
	if t.screen = shown; shown == nil {
		t.UI.Err.Divert(t.UI.Out) // the lines are this command's result
		defer t.UI.Err.Divert(nil)
		if len(runs) == 0 {
			t.UI.Note("no run is active; new runs appear here")
		}
	}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	if shown != nil {
		stop := context.AfterFunc(ctx, shown.Stop)
		defer stop()
		go func() {
			<-shown.Left()
			leave(nil)
		}()
	}
	attach.Watch(ctx, t.source, t.event, t.away)
	return nil
}

// connect opens the source of runs: the repository, or a service.
func (t *top) connect(ctx context.Context) (end func() error, err error) {
	if t.address == "" {
		p, err := t.Open(t.cmd)
		if err != nil {
			return nil, err
		}
		name := p.Names(ctx)
		name("") // reads the backlog now, and not while the view draws
		t.source, t.actions = attach.Local{Journal: p.Journal}, progress.ViewActions(t.App, p, name)
		t.name = func(_, key string) string { return name(key) }
		return p.Close, nil
	}
	service, err := clientOf(t.App, "", t.address, t.tokenFile)
	if err != nil {
		return nil, err
	}
	t.source = service
	t.name = func(project, key string) string { return project + "/" + key }
	t.actions = tui.Actions{
		Name: func(r tui.Run) string { return t.name(r.Project, r.Key) }, Cost: look.CostText,
		Stop: func(ctx context.Context, r tui.Run) error {
			return service.Stop(ctx, attach.Run{Project: r.Project, ID: r.ID, Key: r.Key})
		},
		Diff: func(ctx context.Context, r tui.Run) (string, error) { return t.diffThere(ctx, r) },
	}
	return func() error { service.Close(); return nil }, nil
}

// diffThere returns the changes of a service's run, if the repository is on this host.
func (t *top) diffThere(ctx context.Context, r tui.Run) (text string, err error) {
	runs, err := t.source.Runs(ctx)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(runs, func(on attach.Run) bool { return on.ID == r.ID && on.Project == r.Project })
	if at < 0 {
		return "", fmt.Errorf("%s is not being worked any more", r.Key)
	}
	there := *t.App
	there.Repo = runs[at].Repo
	p, err := there.Open(t.cmd)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return progress.DiffText(ctx, p, r.Key)
}

func (t *top) event(e attach.Event) {
	v := t.views[e.Run.Project]
	if v == nil {
		v = &progress.View{
			UI:      t.UI,
			Screen:  t.screen,
			Project: e.Run.Project,
			Name:    func(key string) string { return t.name(e.Run.Project, key) },
		}
		t.views[e.Run.Project] = v
	}
	if e.Found && t.screen == nil {
		v.Line(e.Event, t.UI.PaintErr(screen.Bold, "working"), e.Title)
	}
	if e.Old {
		text, _ := look.LogText(e.Event)
		t.screen.Event(v.Project, e.Event, text)
		return
	}
	v.Event(e.Event)
}

// away reports that the connection to the runs is lost, or is back.
func (t *top) away(err error) {
	if err != nil {
		t.screen.Away(time.Now())
		t.UI.Warn(fmt.Sprintf("%v; trying again", err))
		return
	}
	t.screen.Away(time.Time{})
	t.UI.Note("connected again")
}
