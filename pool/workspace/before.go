package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/worktree"
)

// beforeTimeout is the limit of one host command.
const beforeTimeout = 15 * time.Minute

// Before describes a run of the user's host commands. They are the only part of a run outside the sandbox: they see a checkout of
// the base, and nothing of an agent's.
type Before struct {
	Run       string
	Key       string
	Base      worktree.Base
	Env       []string // added to the user's environment
	Interrupt <-chan struct{}
	Stream    func(name string) (io.WriteCloser, error)
}

// Made has the files that the host commands have made.
type Made struct{ tree *worktree.Tree }

// Drop removes the checkout. It may be called on nil.
func (m *Made) Drop(ctx context.Context) error {
	if m == nil {
		return nil
	}
	after, cancel := halt.Hurried(ctx)
	defer cancel()
	return m.tree.Discard(after)
}

// Secrets returns the secrets in files of environment variables.
func (m *Made) Secrets() []string {
	if m == nil {
		return nil
	}
	return redact.InFiles(m.tree.Dir(), []string{"."})
}

// CopyTo copies the files into another worktree.
func (m *Made) CopyTo(ctx context.Context, tree *worktree.Tree) error {
	if m == nil {
		return nil
	}
	return tree.TakeUntracked(ctx, m.tree)
}

// Prepare runs the host commands on a checkout of the base. It returns nil if there are none.
func (c *Config) Prepare(ctx context.Context, b Before) (*Made, error) {
	if len(c.Before) == 0 {
		return nil, nil
	}
	tree, err := c.Repo.Add(ctx, worktree.Spec{
		Run:        b.Run + "-before",
		ParentRun:  b.Run,
		Key:        b.Key,
		Base:       b.Base,
		FilterBase: b.Base.Commit,
		Detached:   true,
	})
	if err != nil {
		return nil, fmt.Errorf("before: %w", err)
	}
	m := &Made{tree}
	if err := c.HostCommands(ctx, b, tree.Dir()); err != nil {
		return nil, errors.Join(err, m.Drop(ctx))
	}
	return m, nil
}

// HostCommands runs the commands in a folder.
func (c *Config) HostCommands(ctx context.Context, b Before, dir string) error {
	for i, line := range c.Before {
		tail := proc.NewTail(4 << 10)
		log, err := b.Stream(fmt.Sprintf("before-%d.log", i+1))
		if err != nil {
			return err
		}
		both := io.MultiWriter(log, tail) // one writer, so that one goroutine writes to it
		limit, cancel := context.WithTimeoutCause(ctx, beforeTimeout, fmt.Errorf("it did not end within %s", beforeTimeout))
		exit, err := proc.Run(limit, proc.Spec{
			Argv: []string{"/bin/sh", "-c", line}, Dir: dir, Env: append(os.Environ(), b.Env...),
			Stdout: both, Stderr: both, Mark: b.Run, Interrupt: b.Interrupt,
		})
		cancel()
		cerr := log.Close()
		switch {
		case err != nil:
			return fmt.Errorf("host command %q: %w", line, err)
		case exit.Code != 0:
			return fmt.Errorf("host command %q: exit status %d: %s", line, exit.Code, Cause(tail.String()))
		case cerr != nil:
			return cerr
		}
	}
	return nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// causal matches lines that state why a program has failed. Many outputs end with other lines, such as a summary or the place of
// a log.
var causal = pattern.Lazy(`[Ee]rror(: | \d+ )|^fatal: |does not satisfy|(?i)\b(cannot|can't|could not|no such|not found|missing|denied|refused|unable)\b`)

// repeated matches lines of pip, and of git's submodules, that only repeat that something has failed.
var repeated = pattern.Lazy(`error: subprocess-exited-with-error$|^fatal: clone of .* failed$`)

// npmLog matches npm's note on the place of its log inside the sandbox.
var npmLog = pattern.Lazy(`(?m)^.*A complete log of this run.*?(:\n.*)?$`)

// Cause returns the last line of a program's output that states a cause, or else the last line.
func Cause(s string) string {
	s = npmLog().ReplaceAllString(s, "")
	for _, line := range slices.Backward(strings.Split(s, "\n")) {
		if causal().MatchString(line) && !repeated().MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return lastLine(s)
}
