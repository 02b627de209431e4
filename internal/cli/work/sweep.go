package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/channels"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/progress"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/notify"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/trace"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/pool/workspace"
)

// sweep is one run of `ralph work`.
type sweep struct {
	*compose.App
	parts      *compose.Parts
	keys       []string // as the user named them; empty: all issues
	dry, plain bool     // flags

	config  pool.Config
	workers *pool.Pool
	view    *progress.View
	people  *notify.Notifier
}

func (s *sweep) run(ctx context.Context) (err error) {
	p := s.parts
	if s.dry {
		p.PreferNone() // a dry run runs nothing in a sandbox
	}
	if s.config, err = s.PoolConfig(ctx, p); err != nil {
		return err
	}
	if both := p.IgnoredTracker(); both != "" {
		s.UI.Note("%s; %s", screen.CleanLine(both), p.IgnoredTrackerFix())
	}
	if err := Sweepable(ctx, p, s.config.Run.Publish); err != nil {
		return err
	}
	end, err := s.observe(ctx)
	if err != nil {
		return err
	}
	defer end()
	if s.workers, err = pool.New(s.config); err != nil {
		return &exit.Error{Status: exit.Usage, Err: err}
	}
	var keys []string
	for _, typed := range s.keys {
		if key := p.Key(ctx, typed); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	s.keys = keys
	for _, text := range hint.Estimated(s.config.Run) {
		s.UI.Note("%s", text)
	}
	unable := cmp.Or(NoAgent(s.App, p, s.config.Run), Enough(s.config.Parallel))
	switch {
	case unable == nil && !s.dry:
		return s.work(ctx)
	case !s.dry:
		return unable
	case unable != nil:
		s.UI.Warn(unable.Error())
	}
	return s.plan(ctx)
}

// observe prints, notifies and traces the events of runs, until end is called.
func (s *sweep) observe(ctx context.Context) (end func(), err error) {
	p := s.parts
	s.view = &progress.View{UI: s.UI, Started: time.Now(), Name: p.Names(ctx), State: p.State, Lack: LackOnBase(ctx, p)}
	outbox := channels.Outbox(p)
	if s.dry {
		outbox = "" // send nothing
	}
	people, traces, err := Observers(s.App, p, projectName(s.App, p), outbox)
	if err != nil {
		return nil, err
	}
	s.people = people
	s.config.Observe = func(e journal.Event) {
		s.view.Event(progress.InNames(s.view.Name, e))
		traces.Observe(e)
	}
	s.config.Run.Emit, s.config.Run.OnEnd = s.Host.Observe, s.people.Ended
	return func() {
		traces.Close()
		s.people.Close()
	}, nil
}

// Observers returns what notifies people of a project's runs and what traces them; see [channels.New] for outbox.
func Observers(a *compose.App, p *compose.Parts, name, outbox string) (*notify.Notifier, *trace.Tracer, error) {
	people, err := channels.New(a, p, name, outbox)
	if err != nil {
		return nil, nil, err
	}
	traces, err := progress.Tracer(a, p, name)
	if err != nil {
		people.Close()
	}
	return people, traces, err
}

// work sweeps, and prints the result.
func (s *sweep) work(ctx context.Context) error {
	p, provider := s.parts, s.config.Run.Sandboxes
	if err := checkSandbox(ctx, p, provider); err != nil {
		return NoSandbox(ctx, provider.Name(), err)
	}
	noteUncommitted(ctx, s.App, p)
	shown, hide := progress.StartView(s.App, s.plain || s.JSON, "ralph work", "Leave the view? The sweep continues and prints lines.",
		progress.ViewActions(s.App, p, s.view.Name))
	defer hide()
	s.view.Screen = shown
	stop := context.AfterFunc(s.Hard, s.workers.Kill)
	defer stop()
	defer s.NoteStopping(ctx, s.config.Run.StopGrace)()
	summary, err := s.workers.Sweep(ctx, s.keys...)
	checkAgain(p, provider, summary.Runs)
	s.people.Problem(problemOf(summary, err))
	hide()
	err = s.ended(ctx, summary, onFullDisk(p, p.Nearest(ctx, err)))
	if s.config.Run.Publish == journal.PublishMerge && summary.Count(journal.Succeeded) > 0 {
		NoteUnpushed(ctx, s.App, p)
	}
	if text := brokenText(summary.Problems); text != "" && !s.JSON && (err == nil || err.Error() != text) {
		s.UI.Warn(text)
	}
	return err
}

// ended prints the result of a sweep, and returns the error that decides the exit status. failed is the error of the sweep.
func (s *sweep) ended(ctx context.Context, done pool.Summary, failed error) error {
	if failed != nil && len(done.Runs) == 0 {
		return exit.Classified(failed)
	}
	if err := summary(s.App, done, s.view, s.parts.Repo.Remote(), len(s.keys) > 0); err != nil {
		return err
	}
	if failed != nil {
		return exit.Classified(failed)
	}
	err := verdict(ctx, done)
	if !s.JSON {
		sayOnce(err, done.Unavailable, s.view)
	}
	if why, ok := errors.AsType[*exit.Error](err); ok && s.view.Full != "" && why.Hint == s.view.Full {
		why.Hint = "once there is room, the next `ralph work` continues"
	}
	if err != nil || len(s.keys) == 0 {
		return err
	}
	return leftOut(done)
}

// sayOnce shortens the last line if a run's line has already printed the reason, which may be long.
func sayOnce(err, unavailable error, view *progress.View) {
	why, ok := errors.AsType[*exit.Error](err)
	if !ok || unavailable == nil {
		return
	}
	u, agents := errors.AsType[*run.UnavailableError](unavailable)
	_, setUp := errors.AsType[*workspace.BaselineError](unavailable)
	switch key := view.Told(why.Error()); {
	case agents && u.Cause == nil:
		if reason := report.Reason(u.Reason); view.Told(reason) != "" && strings.HasSuffix(why.Error(), reason) {
			why.Err = errors.New(report.Unavailable(u.Agents) + ", see above")
		}
	case key != "" && setUp:
		why.Err = fmt.Errorf("no issue can be worked, see above; `ralph logs %s` has the output", key)
	case key != "":
		why.Err = errors.New("no issue can be worked, see above")
	}
}

// problemOf returns the reason why a sweep could not work the backlog, or "".
func problemOf(s pool.Summary, err error) string {
	switch {
	case s.Interrupted:
		return ""
	case err != nil:
		return service.OneLine(err)
	case s.Unavailable != nil:
		return unavailableText(s.Unavailable)
	}
	return ""
}

// leftOut returns an error if issues that the user named were not worked.
func leftOut(s pool.Summary) error {
	n := countIf(s.Skipped, func(left backlog.Skipped) bool { return left.Skip.Code != journal.SkipRecovered })
	if n == 0 {
		return nil
	}
	return exit.Incompletef("%s not worked", screen.Plural(n, "named issue"))
}
