package pool_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/job"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

// deafAgentProvider is a bindingProvider whose agents neither end nor obey, and whose sandboxes do not close, until goOn is
// closed.
type deafAgentProvider struct {
	bindingProvider
	begins, goOn chan struct{}
}

func newDeafAgentProvider() deafAgentProvider {
	return deafAgentProvider{newBindingProvider(nil), make(chan struct{}, 1), make(chan struct{})}
}

func (m deafAgentProvider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	box, err := m.bindingProvider.Open(ctx, spec)
	return deafAgentBox{box, m}, err
}

type deafAgentBox struct {
	sandboxes.Sandbox
	m deafAgentProvider
}

func (b deafAgentBox) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if strings.Contains(strings.Join(cmd.Argv, " "), "git commit") {
		b.m.begins <- struct{}{}
		<-b.m.goOn
	}
	return b.Sandbox.Exec(ctx, cmd)
}

func (b deafAgentBox) Close(ctx context.Context) error {
	select {
	case <-b.m.goOn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return b.Sandbox.Close(ctx)
}

// The second request to end does not wait for an engine that does not answer. The journal says interrupted, and not died.
func TestKillWhileAnAgentHangs(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	m := newDeafAgentProvider()
	f.Config.Run.Sandboxes = m
	f.issue("a")
	p := f.pool()
	go func() {
		<-m.begins
		p.Kill()
	}()
	if s, err := p.Sweep(t.Context()); err != nil || !s.Interrupted {
		t.Errorf("%+v, %v", s, err)
	}
	if r := f.runs("a")[0]; r.Facts.StoppedStage != journal.StageWork || r.Facts.Stop != journal.StopShutdown || r.PID != 0 {
		t.Errorf("%+v", r.State)
	}
	close(m.goOn)
	f.Config.Run.Sandboxes = newBindingProvider(nil)
	if got := outcomes(f.sweep(t.Context())); got["a"] != journal.Succeeded {
		t.Errorf("%v", got)
	}
	if r := f.runs("a")[0]; r.Verdict.Outcome != journal.Interrupted || r.Verdict.Reason.Code != journal.ReasonShutdown || r.Verdict.Counted {
		t.Errorf("%+v", r.Verdict)
	}
	f.clean()
}

// The same request interrupts a prompt.
func TestKillWhileTheAgentOfAJobHangs(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	m := newDeafAgentProvider()
	kill := make(chan struct{})
	j := f.job(job.StrategyMerge)
	j.Run.Sandboxes, j.Kill = m, kill
	j.Run.Options.Command[2] = commits
	go func() {
		<-m.begins
		close(kill)
	}()
	res, err := j.Do(t.Context())
	if r := res.Record; err != nil || r.Verdict.Outcome != journal.Interrupted || r.Ended.IsZero() {
		t.Errorf("%v, %+v", err, r.State)
	}
	runs, err := f.store.Find(t.Context(), journal.Query{})
	if err != nil || len(runs) != 1 || runs[0].Verdict.Outcome != journal.Interrupted {
		t.Errorf("%+v, %v", runs, err)
	}
	close(m.goOn)
}
