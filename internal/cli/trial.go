package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// trialTime bounds the opening of a sandbox and one short command in it. A slow engine takes some seconds.
const trialTime = 2 * time.Minute

// trial opens a sandbox as every run will, over an empty folder beside the worktrees, and runs git in it. What is wrong with
// an image, a user, a runtime, a limit or a mount shows here, before any sweep. A provider with a policy of its
// own starts a machine for each sandbox; it is believed when its Check is content.
func (a *app) trial(ctx context.Context, p *parts, provider sandboxes.Provider) (err error) {
	if err := provider.Check(ctx); err != nil {
		return err
	}
	c := provider.Capabilities()
	if !c.Isolated() || c.OwnEgress {
		return nil
	}
	mounts, err := a.mounts(p)
	if err != nil {
		return err
	}
	trials := filepath.Join(p.state, "trials")
	defer reapTrials(ctx, trials, provider) // not first: the engine may still be at what the killed one has asked for
	run := fmt.Sprintf("trial-%d-%s-%s", os.Getpid(), provider.Name(), strings.ToLower(rand.Text()[:12]))
	dir := filepath.Join(trials, run)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(dir)) }()
	spec := sandboxes.Spec{Run: run, Worktree: dir, Mounts: mounts, Limits: limits(p.Config)}
	if showsHost(provider) {
		spec.Env = []string{"PATH=" + a.sandboxPath(p.Config)}
	}
	limit, cancel := context.WithTimeoutCause(ctx, trialTime, fmt.Errorf("it has not opened within %s", trialTime))
	defer cancel()
	box, err := provider.Open(limit, spec)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close(context.WithoutCancel(ctx))) }()
	out := proc.NewTail(1 << 10)
	exit, err := box.Exec(limit, sandboxes.Command{Argv: []string{"git", "--version"}, Stdout: out, Stderr: out})
	switch {
	case err != nil:
		return fmt.Errorf("git does not run inside: %w", err)
	case !exit.OK():
		return fmt.Errorf("git does not run inside (exit status %d %s): %s", exit.Code, exit.Signal, strings.TrimSpace(out.String()))
	}
	return nil
}

// reapTrials ends what is left of the trials of a ralph that was killed in one. What cannot be ended now is found again by
// the next.
func reapTrials(ctx context.Context, trials string, provider sandboxes.Provider) {
	left, _ := os.ReadDir(trials) // none, mostly
	for _, folder := range left {
		var pid int
		if _, err := fmt.Sscanf(folder.Name(), "trial-%d-", &pid); err != nil || !strings.Contains(folder.Name(), "-"+provider.Name()+"-") {
			continue
		}
		if _, err := proc.Started(pid); err == nil { // it may still be at it
			continue
		}
		if reaper, ok := provider.(sandboxes.Reaper); ok && reaper.Reap(ctx, folder.Name()) != nil {
			continue
		}
		_ = os.Remove(filepath.Join(trials, folder.Name()))
	}
}

// untried is the end of a sweep whose every run would fail for want of a sandbox.
func untried(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &exitError{status: exitUsage, err: errors.New("sandbox " + sandboxLine(name, err)), hint: "`ralph doctor` looks at it again"}
}

// sandboxLine says in one line which sandbox does not work, and why.
func sandboxLine(name string, err error) string {
	why := strings.TrimPrefix(strings.TrimSpace(err.Error()), "open sandbox "+name+": ")
	return name + ": " + strings.ReplaceAll(why, "\n", "; ")
}
