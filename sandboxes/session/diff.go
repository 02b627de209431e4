package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// Diff is what changed since Prepare: commits, staged and unstaged changes, and untracked files that are not ignored, in
// one patch that "git apply" understands. A nested repository shows as its commit, and where files are copied, which
// leaves git directories on their side, as its files.
type Diff struct {
	Text      []byte `json:"text"`
	Truncated bool   `json:"truncated"` // there is more than Config.MaxDiff
	// Incomplete says what could not be read into it; empty when all was.
	Incomplete string `json:"incomplete,omitempty"`
	// Missing says why there is none, such as a workspace without a repository; empty when there is one.
	Missing string `json:"missing,omitempty"`
}

// Git runs in the sandbox only, where it may meet whatever configuration and hooks a command has planted: it does there
// nothing that the command could not do by itself.
const (
	baseScript = `git rev-parse --git-dir >/dev/null || exit
git rev-parse --verify --quiet 'HEAD^{commit}' || git hash-object -t tree --stdin </dev/null`

	// Where files are copied the workspace's repository stays on the host. Another one keeps what there was: in a folder
	// that is never copied, and in which no command's git finds a repository.
	copiedScript = `set -eu
mkdir -p -- "$GIT_DIR"
git init --quiet
git add --all --ignore-errors -- . >&2 || :
git write-tree`

	// A copy of the index and an object folder of its own: the repository stays as it is. The copy keeps its time, by
	// which git knows the files that it has to read again.
	diffScript = `set -eu
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
trap 'exit 143' HUP INT TERM
objects=$(git rev-parse --path-format=absolute --git-path objects)
index=$(git rev-parse --path-format=absolute --git-path index)
mkdir -p "$scratch/objects/info"
printf '%s\n' "$objects" >"$scratch/objects/info/alternates"
export GIT_INDEX_FILE="$scratch/index" GIT_OBJECT_DIRECTORY="$scratch/objects"
if [ -f "$index" ]; then cp -p -- "$index" "$scratch/index"; else git read-tree "$1"; fi
status=0
git add --all --ignore-errors -- . >&2 || status=3
git diff-index --cached --patch --binary --full-index --no-color --no-ext-diff --no-textconv "$1" -- .
exit "$status"`

	// incompleteStatus is how diffScript ends when some files could not be added.
	incompleteStatus = 3
)

// gitEnv makes git's output independent of the configuration, and keeps it to the point.
func gitEnv() []string {
	config := [][2]string{
		{"core.hooksPath", "/dev/null"}, {"core.fsmonitor", "false"}, {"core.untrackedCache", "false"},
		{"core.splitIndex", "false"}, {"core.safecrlf", "false"}, {"gc.auto", "0"}, {"advice.addEmbeddedRepo", "false"},
	}
	env := []string{
		"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_CONFIG_COUNT=" + strconv.Itoa(len(config)),
	}
	for i, kv := range config {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+kv[0], "GIT_CONFIG_VALUE_"+n+"="+kv[1])
	}
	return env
}

// noteBase records where the diff will start.
func (s *Session) noteBase(ctx context.Context) error {
	out, script := newHead(256), baseScript
	if s.config.Provider.Capabilities().Files == sandboxes.Copy && s.config.Spec.GitDir == "" {
		if _, err := os.Lstat(filepath.Join(s.config.Spec.Worktree, ".git")); err == nil {
			s.gitDir, script = path.Join(s.box.Workdir(), ".git", "ralph-session"), copiedScript
		}
	}
	text, exit, err := s.git(ctx, out, script)
	base := strings.TrimSpace(out.buf.String())
	var start *sandboxes.StartError
	switch {
	case errors.As(err, &start) && errors.Is(err, exec.ErrNotFound):
		s.noBase = "the sandbox has no shell"
	case err != nil:
		return fmt.Errorf("ask for the commit that the workspace is on: %w", err)
	case !exit.OK():
		s.noBase = text
	case !regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`).MatchString(base):
		s.noBase = fmt.Sprintf("git names no commit but %q", base)
	default:
		s.base = base
	}
	return nil
}

// diff compares the workspace with the base.
func (s *Session) diff(ctx context.Context) (Diff, error) {
	if s.base == "" {
		return Diff{Missing: s.noBase}, nil
	}
	out := newHead(s.config.MaxDiff)
	text, exit, err := s.git(ctx, out, diffScript, s.base)
	d := Diff{Text: out.buf.Bytes(), Truncated: out.over}
	switch {
	case err != nil:
		return Diff{}, fmt.Errorf("compare the workspace with %s: %w", s.base, err)
	case d.Truncated || exit.OK():
	case exit.Code == incompleteStatus:
		d.Incomplete = text
	default:
		return Diff{Missing: text}, nil
	}
	return d, nil
}

// git runs a script inside, and returns why it failed, if it did. It ends early when out is full.
func (s *Session) git(ctx context.Context, out *head, script string, args ...string) (string, sandboxes.Exit, error) {
	errs, env := proc.NewTail(4<<10), gitEnv()
	if s.gitDir != "" {
		env = append(env, "GIT_DIR="+s.gitDir, "GIT_WORK_TREE="+s.box.Workdir())
	}
	exit, err := s.box.Exec(ctx, sandboxes.Command{
		Argv: append([]string{"sh", "-c", script, "sh"}, args...),
		Env:  env, Stdout: out, Stderr: errs, Interrupt: out.full, Grace: 5 * time.Second,
	})
	text := reason(errs.String())
	if text == "" {
		text = fmt.Sprintf("git ended with exit status %d", exit.Code)
	}
	return text, exit, err
}

// reason is the line that says most: git's own fatal or error line, else the last one.
func reason(said string) string {
	last := ""
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "fatal: ") || strings.HasPrefix(line, "error: ") {
			return printable(line)
		}
		if line != "" {
			last = line
		}
	}
	return printable(last)
}

// printable makes a line that may come from hostile files safe to show.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// head is a writer that keeps the beginning, and says when there is more.
type head struct {
	room int64
	buf  bytes.Buffer
	over bool
	full chan struct{} // closed when there is more
}

func newHead(room int64) *head { return &head{room: room, full: make(chan struct{})} }

func (h *head) Write(p []byte) (int, error) {
	n := len(p)
	if int64(n) > h.room {
		p = p[:h.room]
		if !h.over {
			h.over = true
			close(h.full)
		}
	}
	h.room -= int64(len(p))
	h.buf.Write(p)
	return n, nil
}
