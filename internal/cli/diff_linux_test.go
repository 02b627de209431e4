package cli

import (
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/ptytest"
)

// TestDiffOnATerminal checks that committed control sequences do not reach the terminal, whichever pager the user has.
func TestDiffOnATerminal(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.commit(t)
	agent := m.program(t, "agent", `printf 'a\033]0;title\007b\n' >x; git add x; git -c user.name=a -c user.email=a@b commit -qm x
		echo "<promise>COMPLETE</promise>"`+"\n")
	got := m.run(t, func(h *compose.Host) { h.Env = append(h.Env, "RALPH_COMMIT_AUTHOR=a <a@b>") },
		"work", "--sandbox=none", "--skip-permissions", "--agent-command="+filepath.Join(agent, "agent"), "--gate=true", "--publish=none")
	if got.status != exit.OK {
		t.Fatalf("%+v", got)
	}
	for _, env := range []string{"GIT_PAGER=cat", "GIT_PAGER=sed s/title/caption/", "PAGER=cat", "PAGER=sed s/title/caption/"} {
		tty, person := ptytest.New(t, 24, 80)
		got := m.run(t, func(h *compose.Host) { h.Env, h.Stdout = append(h.Env, env), tty }, "diff", "one")
		if err := tty.Close(); err != nil {
			t.Fatal(err)
		}
		seen, _ := io.ReadAll(person) // fails when the other side is closed
		want := "+a^[]0;title^Gb"
		if strings.Contains(env, "sed") {
			want = "+a^[]0;caption^Gb"
		}
		if got.status != exit.OK || strings.Contains(string(seen), "\x1b]") || !strings.Contains(colourless.ReplaceAllString(string(seen), ""), want) {
			t.Errorf("%s: %+v, %q", env, got, seen)
		}
	}
}

var colourless = regexp.MustCompile("\x1b\\[[0-9;]*m")
