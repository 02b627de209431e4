package serve

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/channels"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/work"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree/git"
)

// openProject opens a project as `ralph work` would. parallel limits its issues on this machine of a fleet.
func (s *serving) openProject(
	ctx context.Context, a *compose.App, name string, parallel int, observe func(journal.Event),
) (_ *service.Parts, err error) {
	if s.joined != nil {
		a.Clock = s.joined.Now
	}
	p, err := a.Open(s.cmd)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	c, err := a.PoolConfig(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := canWork(ctx, a, p, c); err != nil {
		return nil, err
	}
	s.addView(ctx, name, p)
	people, traces, err := work.Observers(a, p, name, channels.Outbox(p))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			traces.Close()
			people.Close()
		}
	}()
	c.Observe, c.Run.Emit, c.Run.OnEnd = func(e journal.Event) { observe(e); traces.Observe(e) }, a.Host.Observe, people.Ended
	if s.joined != nil {
		shared := s.joined.Journal(name, p.Journal)
		c.Run.StopUnlabels = true // otherwise another machine's planner would start it again at once
		c.Run.Store, c.Observe = shared, func(e journal.Event) { observe(e); traces.Observe(e); shared.Observe(e) }
	}
	workers, err := pool.New(c)
	if err != nil {
		return nil, err
	}
	hook, err := s.webhook(ctx, a, p)
	if err != nil {
		return nil, err
	}
	s.calm(name)
	parts := partsOf(p, c, workers)
	parts.Webhook, parts.Problem, parts.Refused = hook, people.Problem, people.Refused
	parts.Close = func() error {
		s.closing.Go(people.Close) // closing may take a while, and the project may be open again meanwhile
		s.closing.Go(traces.Close)
		return p.Close()
	}
	if s.joined != nil {
		s.joined.take(parts, name, repositoryOf(ctx, a, p), p.Config, parallel, s.listen != "none" && !s.metricsOnly)
	}
	return parts, nil
}

// partsOf returns the parts of a project that depend on neither the service nor its other parts.
func partsOf(p *compose.Parts, c pool.Config, workers *pool.Pool) *service.Parts {
	parts := &service.Parts{
		Pool:     workers,
		Store:    c.Run.Store,
		Claims:   p.Repo,
		Tracker:  p.Backlog,
		PickUp:   p.Labels[0],
		InReview: p.ReviewLabel,
		Sample:   look.Sample,
		Merge:    hint.Commands().Merge,
		Dir:      p.State,
		Fix:      hint.Login,
	}
	if p.Repo.Remote() != "" {
		parts.Fetch = func(ctx context.Context, branch string) error {
			_, err := p.Repo.RemoteTips(ctx, branch)
			return err
		}
	}
	return parts
}

// canWork checks that the project can be worked, and logs warnings.
func canWork(ctx context.Context, a *compose.App, p *compose.Parts, c pool.Config) error {
	if err := work.Sweepable(ctx, p, c.Run.Publish); err != nil {
		return err
	}
	if err := cmp.Or(work.NoAgent(a, p, c.Run), work.Enough(c.Parallel)); err != nil {
		return err
	}
	if err := c.Run.Sandboxes.Check(ctx); err != nil {
		return work.NoSandbox(ctx, c.Run.Sandboxes.Name(), err)
	}
	for _, text := range hint.Estimated(c.Run) {
		p.Log.Warn(text)
	}
	return nil
}

// addView registers the view that prints the project's events.
func (s *serving) addView(ctx context.Context, name string, p *compose.Parts) {
	view := s.view(name)
	view.State, view.Lack = p.State, work.LackOnBase(context.WithoutCancel(ctx), p)
	s.mu.Lock()
	s.views[name] = view
	s.mu.Unlock()
}

// repositoryOf names the project's remote the same way on all machines; see nameOf.
func repositoryOf(ctx context.Context, a *compose.App, p *compose.Parts) string {
	address, err := git.New(p.Top).RemoteURL(ctx, p.Repo.Remote())
	if err != nil {
		return ""
	}
	return nameOf(ctx, a, address)
}

// nameOf names a remote independently of its protocol, and of the aliases in SSH's configuration. It returns "" for a folder.
func nameOf(ctx context.Context, a *compose.App, address string) string {
	r, err := tracker.ParseRemote(address)
	if err != nil {
		return ""
	}
	if scheme, _, is := strings.Cut(address, "://"); !is || strings.Contains(scheme, "ssh") {
		r.Host = sshHost(ctx, a, r.Host)
	}
	return r.Host + "/" + r.Path
}

// sshTime is the time limit for reading SSH's configuration, which may resolve names of hosts.
const sshTime = 5 * time.Second

// sshHost returns the host to which SSH connects under a name, or the name itself if ssh does not say.
func sshHost(ctx context.Context, a *compose.App, name string) string {
	ctx, cancel := context.WithTimeout(ctx, sshTime)
	defer cancel()
	var out bytes.Buffer
	ended, err := proc.Run(ctx, proc.Spec{Argv: []string{"ssh", "-G", "--", name}, Dir: a.Host.Dir, Env: a.Host.Env, Stdout: &out})
	if err != nil || ended.Code != 0 {
		return name
	}
	for line := range strings.Lines(out.String()) {
		if host, ok := strings.CutPrefix(line, "hostname "); ok {
			return strings.ToLower(strings.TrimSpace(host))
		}
	}
	return name
}
