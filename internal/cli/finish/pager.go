package finish

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes/reexec"
	"github.com/ralph-pool/ralph/worktree/git"
)

// visibleRole runs this program as a filter in front of a pager: what an agent commits may contain terminal control sequences.
const visibleRole = "visible"

func init() { //nolint:gochecknoinits // see reexec.Register
	reexec.Register(visibleRole, func(p reexec.Process) int {
		if err := visible(p.Stdout, p.Stdin); err != nil {
			return exit.Failed
		}
		return exit.OK
	})
}

// colours matches git's colour sequences, without concealed text (8).
var colours = pattern.Lazy(`^\x1b\[(?:` + colour + `(?:;` + colour + `)*)?m`)

const colour = `(?:[0-79]|[1-9][0-9]|10[0-7]|[34]8;5;[0-9]{1,3}|[34]8;2(?:;[0-9]{1,3}){3})`

// visible copies text and makes control characters visible, except line ends, tabs and colours.
func visible(to io.Writer, from io.Reader) error {
	in, out := bufio.NewReader(from), bufio.NewWriter(to)
	for {
		line, err := in.ReadString('\n')
		if _, failed := out.WriteString(visibleLine(line)); failed != nil {
			return failed
		}
		if in.Buffered() == 0 {
			if failed := out.Flush(); failed != nil {
				return failed
			}
		}
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return err
		}
	}
}

func visibleLine(line string) string {
	if !strings.ContainsFunc(line, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || neutral.Invisible(r) || r == utf8.RuneError)
	}) {
		return line
	}
	var b strings.Builder
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRuneInString(line[i:])
		code := colours().FindString(line[i:])
		switch {
		case code != "":
			_, _ = b.WriteString(code)
			size = len(code)
		case r == '\n', r == '\t', r == '\r' && line[i+1:] == "\n":
			_, _ = b.WriteRune(r)
		case r == utf8.RuneError && size == 1:
			_, _ = fmt.Fprintf(&b, "<%02X>", line[i])
		case r < ' ':
			_, _ = b.WriteString("^" + string('@'+r))
		case unicode.IsControl(r), neutral.Invisible(r):
			_, _ = fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			_, _ = b.WriteString(line[i : i+size])
		}
		i += size
	}
	return b.String()
}

// throughPager puts the filter in front of the user's pager of git diff. It returns settings and an environment for git,
// because GIT_PAGER would override a setting. Without a terminal it changes nothing.
func throughPager(a *compose.App, dir string) (settings, env []string, err error) {
	if !screen.IsTerminal(a.Host.Stdout) {
		return nil, a.Host.Env, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find this program: %w", err)
	}
	ask := func(args ...string) string {
		var out strings.Builder
		spec := proc.Spec{Argv: append([]string{"git", "-C", dir}, args...), Dir: a.Host.Dir, Env: a.Host.Env, Stdout: &out}
		if _, err := proc.Run(a.Hard, spec); err != nil {
			return ""
		}
		return strings.TrimSpace(out.String())
	}
	setting := ""
	if a.Host.Getenv("GIT_PAGER") == "" {
		setting = ask("config", "--get", "pager.diff")
	}
	pager := filtered(self, setting, ask("var", "GIT_PAGER"))
	return []string{"-c", "pager.diff=true"}, append(slices.Clip(a.Host.Env), "GIT_PAGER="+pager), nil
}

// filtered returns a command line of the filter and a pager: setting is the command's own pager, general the default one.
func filtered(self, setting, general string) string {
	filter := git.Quote(self)
	for _, arg := range reexec.Args(visibleRole, "-") {
		filter += " " + arg
	}
	pager := setting
	switch strings.ToLower(setting) {
	case "", "true", "yes", "on", "1":
		pager = general
	case "false", "no", "off", "0":
		pager = ""
	}
	if pager == "" || pager == "cat" {
		return filter
	}
	return filter + " | " + pager
}
