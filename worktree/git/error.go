package git

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git/internal/reflock"
)

// Errors for callers to check; each is wrapped with details.
var (
	// ErrMoved means that a ref is not at the expected commit.
	ErrMoved = errors.New("ref has moved")
	// ErrLocked means that another program holds the lock of a ref all the time.
	ErrLocked = reflock.ErrLocked
	// ErrRemote means that the remote cannot be reached, or refuses.
	ErrRemote = errors.New("remote is not available")
	// ErrNoRemote means that the repository has no remote of that name.
	ErrNoRemote = errors.New("there is no remote")
	// ErrNoRepository means that a folder is not in a repository.
	ErrNoRepository = errors.New("not in a git repository")
	// ErrUnavailable means that the remote does not answer, or has a temporary fault of its own. It is an ErrRemote.
	ErrUnavailable = fmt.Errorf("%w for now", ErrRemote)
	// ErrDeclined means that the remote was reached and refused the push.
	ErrDeclined = errors.New("declined")
	// ErrStale means that a push was refused because the remote's ref was not at the expected commit.
	ErrStale = errors.New("not moved")
	// ErrNotAtomic means that the remote cannot move several refs in one transaction.
	ErrNotAtomic = errors.New("the remote cannot move several refs in one step")
)

// Error is the failure of a git command.
type Error struct {
	Args     []string // without the program name
	ExitCode int
	Stderr   string // the end of standard error
	env      map[string]string
}

// Failed reports whether err means that a git command ran and failed.
func Failed(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok
}

// ExitCode returns the exit status of a failed git command, or 0 if err is not an [*Error].
func ExitCode(err error) int {
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed.ExitCode
	}
	return 0
}

// ObjectsIn returns the object names in a failed git command's error output, at most 100.
func ObjectsIn(err error) []string {
	failed, ok := errors.AsType[*Error](err)
	if !ok {
		return nil
	}
	return regexp.MustCompile(`\b[0-9a-f]{40,64}\b`).FindAllString(failed.Stderr, 100)
}

// Error returns one line: the subcommand, git's reason, and how to repair a file that git cannot read.
func (e *Error) Error() string {
	name := commandName(e.Args)
	if reason := e.reason(); reason != "" {
		return name + ": " + reason + e.repairHint()
	}
	return fmt.Sprintf("%s: exit status %d", name, e.ExitCode)
}

// commandName returns the command's name for messages, without the settings before the subcommand.
func commandName(args []string) string {
	for len(args) > 2 && args[0] == "-c" {
		args = args[2:]
	}
	return strings.Join(append([]string{"git"}, args[:min(1, len(args))]...), " ")
}

// reason returns git's first fatal or error line, the message of git's ssh, or the last line that is no hint.
func (e *Error) reason() string {
	last := ""
	for line := range strings.Lines(e.Stderr) {
		line = strings.TrimSpace(line)
		for _, prefix := range []string{"fatal: ", "error: "} {
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				if rest == "Could not read from remote repository." {
					rest = cmp.Or(last, rest) // the message of ssh
				}
				return Printable(rest)
			}
		}
		if line != "" && !strings.HasPrefix(line, "hint:") {
			last = line
		}
	}
	return Printable(last)
}

func (e *Error) repairHint() string {
	if regexp.MustCompile(`(?m)^fatal: (unexpected|unterminated) line in .*packed-refs: `).MatchString(e.Stderr) {
		return " (delete this line from the file)"
	}
	top := e.env["GIT_WORK_TREE"]
	damaged := regexp.MustCompile(`(?m)^(fatal|error): (.*index file (smaller|corrupt)|bad index file|bad signature 0x)`)
	if top == "" || e.env["GIT_INDEX_FILE"] != "" || !damaged.MatchString(e.Stderr) {
		return ""
	}
	return "; rebuild the index with: rm " + Quote(e.env["GIT_DIR"]+"/index") + " && git -C " + Quote(top) + " reset"
}

// Limits of a remote's message in an error: lines and bytes.
const (
	maxMessageLines = 20
	maxMessageBytes = 1500
)

// brokenRefMessage describes the ref in the error that is empty or has no object, and how to remove it; "" without such a
// ref. In where and how, <ref> stands for the ref.
func (e *Error) brokenRefMessage(where, how string) string {
	found := regexp.MustCompile(`(?m)^(?:remote: )?fatal: bad object (refs/\S+)`).FindStringSubmatch(e.Stderr)
	if found == nil {
		return ""
	}
	text := where + `, the ref <ref> is broken; remove it ` + how + `there with: git update-ref -d <ref> || rm "$(git rev-parse --git-path <ref>)"`
	return strings.ReplaceAll(text, "<ref>", Quote(Printable(found[1])))
}

// remoteMessage returns the remote's message about a refused push, in one line: the reason of a hook or of a rule.
func (e *Error) remoteMessage() string {
	var lines []string
	for line := range strings.Lines(e.Stderr) {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "remote:")
		text = strings.Join(strings.Fields(Printable(strings.ReplaceAll(text, "\t", " "))), " ")
		if !ok || strings.Trim(text, "-=*# ") == "" || strings.HasPrefix(text, "Resolving deltas") {
			continue
		}
		lines = append(lines, strings.TrimPrefix(text, "error: "))
	}
	if len(lines) > maxMessageLines {
		lines = append(lines[:maxMessageLines], "…")
	}
	text := strings.Join(lines, "; ")
	if len(text) > maxMessageBytes {
		text = strings.ToValidUTF8(text[:maxMessageBytes], "") + "…"
	}
	return text
}

// Printable makes hostile text safe to show on one line.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
