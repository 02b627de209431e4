package session

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// Diff is the change since Prepare, as one patch for "git apply": commits, staged and unstaged changes, and untracked files
// that are not ignored. A nested repository appears as its commit, or as its files where files are copied without git
// directories.
type Diff struct {
	Text      []byte `json:"text"`
	Truncated bool   `json:"truncated"` // the diff is longer than Config.MaxDiff
	// Incomplete names what could not be read; otherwise empty.
	Incomplete string `json:"incomplete,omitempty"`
	// Missing is the reason why there is no diff, such as a workspace without a repository; otherwise empty.
	Missing string `json:"missing,omitempty"`
}

// Git runs only inside the sandbox, so configuration and hooks planted by a command can do nothing that the command could
// not do itself.
const (
	branchScript = `git rev-parse --git-dir >/dev/null || exit
if git show-ref --verify --quiet "refs/heads/$1"; then exec git switch --quiet "$1"; fi
exec git switch --quiet --create "$1"`

	baseScript = `git rev-parse --git-dir >/dev/null || exit
git rev-parse --verify --quiet 'HEAD^{commit}' || git hash-object -t tree --stdin </dev/null`

	// If the workspace's repository stays on the host, a new repository records the initial state. It is in a folder where
	// the git of commands does not find it.
	copiedScript = `set -eu
mkdir -p -- "$GIT_DIR"
git init --quiet
git add --all --ignore-errors -- . >&2 || :
git write-tree`

	// A copy of the index and a separate object folder leave the repository unchanged. The copy keeps its modification
	// time: git uses it to decide which files it must read again.
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

	// incompleteStatus is the exit status of diffScript when some files could not be added.
	incompleteStatus = 3
)

// gitCommand returns a command whose git output does not depend on the configuration.
func (s *Session) gitCommand() sandboxes.Command {
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
	if s.gitDir != "" {
		env = append(env, "GIT_DIR="+s.gitDir, "GIT_WORK_TREE="+s.box.Workdir())
	}
	return sandboxes.Command{Env: env}
}

// switchBranch switches to the configured branch, if any.
func (s *Session) switchBranch(ctx context.Context) error {
	if s.config.Branch == "" {
		return nil
	}
	if err := s.mustScript(ctx, branchScript, s.gitCommand(), s.config.Branch); err != nil {
		return fmt.Errorf("switch to branch %q: %w", s.config.Branch, err)
	}
	return nil
}

// noteBase records the start of the diff.
func (s *Session) noteBase(ctx context.Context) error {
	if s.config.NoDiff {
		return nil
	}
	script := baseScript
	if s.config.Provider.Capabilities().Files == sandboxes.Copy && s.config.Spec.GitDir == "" {
		if _, err := os.Lstat(filepath.Join(s.config.Spec.Worktree, ".git")); err == nil {
			s.gitDir, script = path.Join(s.box.Workdir(), ".git", "ralph-session"), copiedScript
		}
	}
	var out bytes.Buffer
	cmd := s.gitCommand()
	cmd.Stdout = &proc.Limit{To: &out, Room: 256}
	exit, message, err := s.script(ctx, script, cmd)
	base := strings.TrimSpace(out.String())
	switch {
	case sandboxes.NoProgram(err):
		s.noBaseReason = "the sandbox has no shell"
	case err != nil:
		return fmt.Errorf("ask for the commit of the workspace: %w", err)
	case !exit.OK():
		s.noBaseReason = message
	case !regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`).MatchString(base):
		s.noBaseReason = fmt.Sprintf("git names no commit but %q", base)
	default:
		s.base = base
	}
	return nil
}

// diff compares the workspace with the base. It stops early if the diff is too large.
func (s *Session) diff(ctx context.Context) (Diff, error) {
	if s.base == "" {
		return Diff{Missing: s.noBaseReason}, nil
	}
	var text bytes.Buffer
	out := &proc.Limit{To: &text, Room: s.config.MaxDiff, Full: make(chan struct{})}
	cmd := s.gitCommand()
	cmd.Stdout, cmd.Interrupt = out, out.Full
	exit, message, err := s.script(ctx, diffScript, cmd, s.base)
	d := Diff{Text: text.Bytes(), Truncated: out.Dropped > 0}
	switch {
	case err != nil:
		return Diff{}, fmt.Errorf("compare the workspace with %s: %w", s.base, err)
	case d.Truncated || exit.OK():
	case exit.Code == incompleteStatus:
		d.Incomplete = message
	default:
		return Diff{Missing: message}, nil
	}
	return d, nil
}
