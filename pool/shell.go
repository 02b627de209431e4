package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree"
)

// Shell is one command in a sandbox over a fresh worktree, without an agent: what `ralph sandbox exec` does.
type Shell struct {
	Repo      *worktree.Repo // with a state folder for jobs, see Job
	Sandboxes sandboxes.Provider
	Network   Network
	Env       []string
	Limits    sandboxes.Limits
	Mounts    []sandboxes.Mount

	Argv           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Grace          time.Duration // between asking the command to end and killing it
	Kill           <-chan struct{}
	Recovered      func(Recovered) // as a Job's
}

// ShellResult is how the command ended, and what it left.
type ShellResult struct {
	Exit    sandboxes.Exit
	Branch  string            // where its commits are; empty when it left nothing
	Key     string            // what it left is kept by this name; empty when it left nothing
	Commits []worktree.Commit // oldest first
	WIP     string            // commit with the changes it did not commit; they are on refs/ralph/wip
	Refused []string          // what the network let nobody through to
	Notices []string          // what the sandbox has to tell, such as which processes a limit has cost
}

// Run runs the command. Ending ctx asks it to end. Its commits and changes are kept.
func (s Shell) Run(ctx context.Context) (res ShellResult, err error) {
	j := Job{Repo: s.Repo, Sandboxes: s.Sandboxes, Strategy: StrategyMerge, Name: "shell", Recovered: s.Recovered}
	hard, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stop := make(chan struct{})
	go func() {
		select {
		case <-s.Kill:
			cancel(errKilled)
		case <-stop:
		}
	}()
	defer close(stop)

	at, err := j.open(hard)
	if err != nil {
		return res, err
	}
	defer at.free()
	err = s.exec(ctx, hard, at, &res)
	after := context.WithoutCancel(hard)
	if _, herr := at.handBack(after); herr != nil {
		return res, errors.Join(err, herr)
	}
	res.Commits, res.WIP = at.last.Commits, at.last.WIP
	if len(res.Commits) > 0 || res.WIP != "" {
		res.Branch, res.Key = at.branch, at.key
		return res, errors.Join(err, at.tree.Remove(after))
	}
	return res, errors.Join(err, j.remove(after, at, &JobResult{}))
}

func (s Shell) exec(soft, hard context.Context, at place, res *ShellResult) (err error) {
	spec := sandboxes.Spec{Run: at.run, Worktree: at.dir, Env: s.Env, Mounts: s.Mounts, Limits: s.Limits}
	if err := separate(hard, s.Sandboxes, at.tree, &spec); err != nil {
		return err
	}
	way, err := leaving{
		run: at.run, provider: s.Sandboxes, network: s.Network, secrets: NewSecrets(), log: zerolog.Nop(),
	}.open()
	if err != nil {
		return err
	}
	defer func() {
		res.Refused = append(res.Refused, way.refused()...)
		err = errors.Join(err, way.close())
	}()
	spec.Egress = way.socket
	box, err := s.Sandboxes.Open(hard, spec)
	if err != nil {
		return fmt.Errorf("sandbox %s: %w", s.Sandboxes.Name(), err)
	}
	res.Exit, err = box.Exec(hard, sandboxes.Command{
		Argv: s.Argv, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, Interrupt: soft.Done(), Grace: s.Grace,
	})
	err = errors.Join(err, box.Close(context.WithoutCancel(hard)))
	res.Notices, res.Refused = noticesOf(box), refusedBy(box)
	return err
}
