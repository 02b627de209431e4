package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
)

// stderrLimit is how much of a git command's standard error is kept: enough for every message, too little to hurt.
const stderrLimit = 16 << 10

// killGrace is how long a git command may take to clean up after it was asked to end.
const killGrace = 5 * time.Second

// GitError is a git command that ran and failed.
type GitError struct {
	Args     []string // without the program's name
	ExitCode int
	Stderr   string // the tail of it
}

// Error is one line: the subcommand and what git says is wrong.
func (e *GitError) Error() string {
	name := "git"
	if len(e.Args) > 0 {
		name += " " + e.Args[0]
	}
	reason := e.reason()
	if reason == "" {
		return fmt.Sprintf("%s: exit status %d", name, e.ExitCode)
	}
	return name + ": " + reason
}

// reason picks the line that says most: git's own fatal or error line, else the last one.
func (e *GitError) reason() string {
	last := ""
	for line := range strings.Lines(e.Stderr) {
		line = strings.TrimSpace(line)
		for _, prefix := range []string{"fatal: ", "error: "} {
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				return printable(rest)
			}
		}
		if line != "" {
			last = line
		}
	}
	return printable(last)
}

// printable makes text that may come from hostile files safe to show in one line.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// git runs the git program against one pinned git directory. It is a value: the with… methods give changed copies.
type git struct {
	env []string // the whole environment
	dir string   // working directory; a folder that no agent can write
	// auth gives more environment for one command; nil gives none.
	auth func(ctx context.Context) ([]string, error)
}

// newGit is a git that is not pinned to any repository yet.
func newGit(dir string, environ []string) git {
	return git{env: gitEnv(environ), dir: dir}
}

// with adds to the environment; later entries win.
func (g git) with(kv ...string) git {
	g.env = append(slices.Clip(g.env), kv...)
	return g
}

// pin fixes the git directory, the common directory and the work tree, so that nothing in the work tree (such as a
// .git file that an agent has replaced) decides which repository, and whose configuration, git uses.
func (g git) pin(gitDir, common, workTree string) git {
	g = g.with("GIT_DIR="+gitDir, "GIT_WORK_TREE="+workTree)
	if gitDir != common {
		g = g.with("GIT_COMMON_DIR=" + common)
	}
	return g
}

// run runs one command and returns its standard output, with a *GitError too.
func (g git) run(ctx context.Context, stdin string, args ...string) (string, error) {
	var stdout bytes.Buffer
	err := g.pipe(ctx, strings.NewReader(stdin), &stdout, args...)
	return stdout.String(), err
}

// pipe runs one command between a reader and a writer. When ctx ends, git is asked to end: one that is killed leaves
// its lock files behind, and they would stop every later command.
func (g git) pipe(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("git %s: %w", args[0], context.Cause(ctx))
	}
	env, err := g.environment(ctx)
	if err != nil {
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	stderr := proc.NewTail(stderrLimit)
	exit, err := proc.Run(context.WithoutCancel(ctx), proc.Spec{
		Argv: append([]string{"git"}, args...), Dir: g.dir, Env: env,
		Stdin: stdin, Stdout: stdout, Stderr: stderr,
		Interrupt: ctx.Done(), Grace: killGrace,
	})
	switch {
	case errors.Is(err, proc.ErrStart):
		return fmt.Errorf("git %s: %w (is git installed and in PATH?)", args[0], err)
	case err != nil:
		return fmt.Errorf("git %s: %w", args[0], err)
	case exit.Code == 0:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("git %s: %w", args[0], context.Cause(ctx))
	}
	return &GitError{Args: args, ExitCode: exit.Code, Stderr: stderr.String()}
}

func (g git) environment(ctx context.Context) ([]string, error) {
	if g.auth == nil {
		return g.env, nil
	}
	more, err := g.auth(ctx)
	return append(slices.Clip(g.env), more...), err
}

// out runs a command without input and returns its output without the final newline.
func (g git) out(ctx context.Context, args ...string) (string, error) {
	out, err := g.run(ctx, "", args...)
	return strings.TrimSuffix(out, "\n"), err
}

// yes runs a command whose exit status answers a question: 0 is yes, 1 is no, all else is an error.
func (g git) yes(ctx context.Context, args ...string) (bool, error) {
	_, err := g.run(ctx, "", args...)
	if failed, ok := errors.AsType[*GitError](err); ok && failed.ExitCode == 1 {
		return false, nil
	}
	return err == nil, err
}

// contains reports whether the commit outer has inner in its history.
func (g git) contains(ctx context.Context, outer, inner string) (bool, error) {
	if outer == inner {
		return true, nil
	}
	return g.yes(ctx, "merge-base", "--is-ancestor", inner, outer)
}

// environ is the environment of this process; git gets only what gitEnv and netEnv pick from it.
func environ() []string { return os.Environ() }
