// Package git runs the git program, and reads and moves refs. Its callers are the packages below worktree.
//
// Every command gets an environment built from scratch: git runs no hook, file system monitor, editor or prompt and signs
// nothing, whatever the configuration files say. A pinned [Runner] passes the repository in the environment, so that no
// file in a work tree decides which repository is used.
//
// The package is safe for concurrent use, by goroutines and by processes.
package git

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/worktree/git/internal/reflock"
	"github.com/ralph-pool/ralph/worktree/internal/reuse"
)

const (
	// AgentMemory is the memory limit of commands on an agent's data, in bytes. A million objects take a tenth of it.
	AgentMemory = 2 << 30
	stderrLimit = 16 << 10        // bytes of standard error that are kept
	killGrace   = 5 * time.Second // time for git to remove its lock files after the request to end

	// commandTime limits a command. It only ends one that hangs, for example on a pipe in the place of a file.
	commandTime = TransferTime + 10*time.Minute
)

// Runner runs git in one folder with one environment. It is a value: With, WithDir, Pin, WithTimeout and WithAuth return copies.
type Runner struct {
	env       []string // the complete environment
	dir       string   // working directory; a folder that no agent can write
	common    string   // the pinned repository; empty when none is pinned
	ownedRefs reflock.Owned
	auth      func(ctx context.Context) ([]string, error)
	timeout   time.Duration    // time limit of each command; 0: commandTime
	maxMemory uint64           // bytes that each command may write to; 0: no limit
	minFree   int64            // see WithMinFree
	tries     *Tries           // retries of commands with a remote; nil: none
	cache     *cache           // cache of configurations; nil: read each time
	processes *reuse.Processes // pool of processes; nil: none is reused
}

// New returns a runner without a pinned repository. It takes a few variables, such as PATH and HOME, from the environment
// of this process.
func New(dir string) Runner { return Runner{env: baseEnv(os.Environ()), dir: dir} }

// With adds variables to the environment; later ones take precedence.
func (g Runner) With(env ...string) Runner {
	g.env = append(slices.Clip(g.env), env...)
	return g
}

// WithDir sets the working directory.
func (g Runner) WithDir(dir string) Runner {
	g.dir = dir
	return g
}

// WithTimeout sets the time limit of each command. The default is half an hour.
func (g Runner) WithTimeout(limit time.Duration) Runner {
	g.timeout = limit
	return g
}

// WithMemory limits the memory that each command may write to, in bytes.
func (g Runner) WithMemory(most uint64) Runner {
	g.maxMemory = most
	return g
}

// WithMinFree sets the number of bytes that a fetch leaves free on the disk; 0 or less: no limit.
func (g Runner) WithMinFree(floor int64) Runner {
	g.minFree = floor
	return g
}

// Floor returns the limit that WithMinFree has set.
func (g Runner) Floor() int64 { return g.minFree }

// WithAlternate makes the objects in a folder visible to the runner, too.
func (g Runner) WithAlternate(objects string) Runner {
	return g.With("GIT_ALTERNATE_OBJECT_DIRECTORIES=" + Alternate(objects))
}

// Alternate quotes the path of an objects folder for git's list of such folders.
func Alternate(dir string) string {
	if strings.ContainsAny(dir, `:"`+"\n") {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(dir) + `"`
	}
	return dir
}

// WithAuth adds variables, such as credentials, that auth returns for each command.
func (g Runner) WithAuth(auth func(ctx context.Context) ([]string, error)) Runner {
	g.auth = auth
	return g
}

// Pin fixes the git directory, the common directory and the work tree. A .git file in the work tree is then not read.
func (g Runner) Pin(gitDir, common, workTree string) Runner {
	g = g.With("GIT_DIR="+gitDir, "GIT_WORK_TREE="+workTree)
	if gitDir != common {
		g = g.With("GIT_COMMON_DIR=" + common)
	}
	g.common = common
	return g
}

// Common returns the common directory of the pinned repository, or "".
func (g Runner) Common() string { return g.common }

// Run runs a command and returns its standard output, also if the error is an [*Error].
func (g Runner) Run(ctx context.Context, stdin string, args ...string) (string, error) {
	var stdout bytes.Buffer
	err := g.Pipe(ctx, strings.NewReader(stdin), &stdout, args...)
	return stdout.String(), err
}

// Output runs a command without input and returns its output without the final newline.
func (g Runner) Output(ctx context.Context, args ...string) (string, error) {
	out, err := g.Run(ctx, "", args...)
	return strings.TrimSuffix(out, "\n"), err
}

// Test runs a command whose exit status is an answer: 0 means yes, 1 no, and any other an error.
func (g Runner) Test(ctx context.Context, args ...string) (bool, error) {
	_, err := g.Run(ctx, "", args...)
	if ExitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// Lines runs a command and calls line with each line of its output; the line is valid only during the call.
func (g Runner) Lines(ctx context.Context, line func([]byte), args ...string) error {
	lines := proc.NewExactLines(line)
	if err := g.Pipe(ctx, strings.NewReader(""), lines, args...); err != nil {
		return err
	}
	if lines.Cut() > 0 {
		return fmt.Errorf("%s: a line of the output is too long", commandName(args))
	}
	return lines.Close()
}

// Pipe runs a command with stdin and stdout. When ctx or the time limit ends, it asks git to end instead of killing it at
// once: a killed git leaves lock files behind.
func (g Runner) Pipe(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	if g.env == nil {
		return errors.New("the repository is not open; open it first")
	}
	limit := cmp.Or(g.timeout, commandTime)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %s", limit))
	defer cancel()
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", commandName(args), context.Cause(ctx))
	}
	env := g.env
	if commandName(args) == "git diff-tree" { // it compares commits, for which git would read the checkout's whole index
		env = append(slices.Clip(env), "GIT_INDEX_FILE=/dev/none")
	}
	if g.auth != nil {
		more, err := g.auth(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", commandName(args), err)
		}
		env = append(slices.Clip(env), more...)
	}
	stderr := proc.NewTail(stderrLimit)
	exit, err := proc.Run(context.WithoutCancel(ctx), proc.Spec{
		Argv: append([]string{"git"}, args...), Dir: g.dir, Env: env,
		Stdin: stdin, Stdout: stdout, Stderr: stderr,
		Interrupt: ctx.Done(), Grace: killGrace, Tied: true, Memory: g.maxMemory,
	})
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%s: %w (is git installed and in PATH?)", commandName(args), err)
	case err != nil:
		return fmt.Errorf("%s: %w", commandName(args), err)
	case exit.Code == 0:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", commandName(args), context.Cause(ctx))
	}
	return &Error{Args: args, ExitCode: exit.Code, Stderr: stderr.String(), env: g.variables()}
}

// Read runs a command and passes its output to read as it arrives. An error of read ends the command and is returned.
func (g Runner) Read(ctx context.Context, stdin string, read func(*bufio.Reader) error, args ...string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	from, to := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := g.Pipe(ctx, strings.NewReader(stdin), to, args...)
		_ = to.CloseWithError(err) // always nil
		done <- err
	}()
	err := read(bufio.NewReaderSize(from, 16<<10))
	_ = from.CloseWithError(err) // always nil
	if err != nil {
		cancel(err)
	}
	return cmp.Or(err, <-done)
}

// Ask is like [Runner.Read] for a command that answers one question after the other: read reads exactly one answer. If the
// runner has a cache, it may reuse a process. Everything that the process does without having answered must be repeatable.
func (g Runner) Ask(ctx context.Context, question string, read func(*bufio.Reader) error, args ...string) error {
	if g.processes == nil || g.auth != nil || g.timeout != 0 {
		return g.Read(ctx, question, read, args...)
	}
	kind := slices.Concat([]string{g.dir, strconv.FormatUint(g.maxMemory, 10)}, args, g.env)
	run := func(ctx context.Context, in io.Reader, out io.Writer) error { return g.Pipe(ctx, in, out, args...) }
	return g.processes.Ask(ctx, kind, run, question, read)
}

// Contains reports whether inner equals outer or is in its history.
func (g Runner) Contains(ctx context.Context, outer, inner string) (bool, error) {
	if outer == inner {
		return true, nil
	}
	return g.Test(ctx, "merge-base", "--is-ancestor", inner, outer)
}

// ContainsIfPresent is like [Runner.Contains], but returns false if the inner commit does not exist here.
func (g Runner) ContainsIfPresent(ctx context.Context, outer, inner string) (bool, error) {
	here, err := g.Test(ctx, "cat-file", "-e", inner+"^{commit}")
	if Failed(err) || err == nil && !here {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return g.Contains(ctx, outer, inner)
}

// MergeTree merges two commits without a work tree. conflicts lists the conflicting files in one line.
func (g Runner) MergeTree(ctx context.Context, ours, theirs string) (tree, conflicts string, err error) {
	out, err := g.WithMemory(AgentMemory).Output(ctx, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
	tree, names, _ := strings.Cut(out, "\x00")
	if ExitCode(err) == 1 {
		return "", Printable(strings.ReplaceAll(strings.Trim(names, "\x00"), "\x00", ", ")), nil
	}
	return tree, "", err
}

// IDs returns the full IDs of named objects, "" for a missing one, with a single process.
func (g Runner) IDs(ctx context.Context, names []string) ([]string, error) {
	out, err := g.Run(ctx, strings.Join(names, "\n")+"\n", "cat-file", "--batch-check=%(objectname)")
	if err != nil {
		return nil, err
	}
	ids := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(ids) != len(names) {
		return nil, fmt.Errorf("git cat-file has answered %d of %d names", len(ids), len(names))
	}
	for i, id := range ids { // for a missing object git prints its name and "missing"
		if !IsObject(id) {
			ids[i] = ""
		}
	}
	return ids, nil
}

// CommitTree makes a commit of a tree.
func (g Runner) CommitTree(ctx context.Context, tree, message string, parents ...string) (string, error) {
	args := []string{"commit-tree", tree, "-F", "-"}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	commit, err := g.Run(ctx, message, args...)
	return strings.TrimSpace(commit), err
}
