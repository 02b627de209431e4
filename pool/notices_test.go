package pool_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/sandboxes"
)

// costly is a provider whose sandboxes say, once closed, that a limit has cost a process.
type costly struct{ *sandboxes.None }

type costlyBox struct {
	sandboxes.Sandbox
	closed bool
}

func (c costly) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	box, err := c.None.Open(ctx, spec)
	return &costlyBox{Sandbox: box}, err
}

func (b *costlyBox) Close(ctx context.Context) error {
	b.closed = true
	return b.Sandbox.Close(ctx)
}

func (b *costlyBox) Notices() []string {
	if !b.closed {
		return nil
	}
	return []string{sandboxes.MemoryNotice(2, 64<<20)}
}

const costlyNotice = "sandbox: 2 processes were killed at the memory limit of 64 MB (memory-mb)"

// What a sandbox has to tell is in the report.
func TestNoticesAreReported(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Sandboxes = costly{sandboxes.NewNone(sandboxes.NoneConfig{})}
	f.issue("a")
	rec := f.only(f.sweep(t.Context()))
	if rec.Verdict.Outcome != pool.Succeeded || !slices.Contains(rec.Verdict.Warnings, costlyNotice) {
		t.Errorf("%+v", rec.Verdict)
	}
	if text := f.text("a"); strings.Count(text, costlyNotice) != 1 {
		t.Errorf("report:\n%s", text)
	}
	f.clean()
}

// A job and a single command tell it, too.
func TestNoticesOfJobs(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	box := costly{sandboxes.NewNone(sandboxes.NoneConfig{})}
	job, err := pool.Job{
		Repo: f.Config.Repo, Agent: f.Config.Agent, Options: f.Config.Options, Sandboxes: box,
		Strategy: pool.StrategyMerge, Prompt: loop.Prompt{Inline: "work"}, Env: f.Config.Env,
	}.Run(t.Context())
	if err != nil || !slices.Contains(job.Warnings, costlyNotice) {
		t.Errorf("%q, %v", job.Warnings, err)
	}
	shell, err := pool.Shell{Repo: f.Config.Repo, Sandboxes: box, Argv: []string{"true"}}.Run(t.Context())
	if err != nil || !slices.Equal(shell.Notices, []string{costlyNotice}) {
		t.Errorf("%q, %v", shell.Notices, err)
	}
}
