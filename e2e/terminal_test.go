package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
)

// terminal is a shell on a terminal emulated by tmux.
type terminal struct {
	t      testing.TB
	socket string
}

func (s scene) terminal(t testing.TB, r repository, width, height int, env ...string) terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux")
	}
	c := terminal{t, filepath.Join(t.TempDir(), "tmux")}
	start := exec.Command("tmux", "-S", c.socket, "-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height),
		"-c", string(r), "PS1='$ ' exec bash --norc --noprofile")
	start.Env = append(s.env("LANG=C.UTF-8", "HISTFILE="), env...)
	if out, err := start.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v\n%s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", c.socket, "kill-server").Run() })
	c.await("$")
	return c
}

func (c terminal) tmux(args ...string) string {
	c.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", c.socket}, args...)...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("tmux %s: %v\n%s", args, err, out)
	}
	return string(out)
}

// keys presses keys by their names in tmux.
func (c terminal) keys(keys ...string) { c.tmux(append([]string{"send-keys"}, keys...)...) }

// run types a command line.
func (c terminal) run(line string) { c.keys(line, "Enter") }

// screen returns the visible content of the terminal, all also what has scrolled away.
func (c terminal) screen() string { return c.tmux("capture-pane", "-p") }
func (c terminal) all() string    { return c.tmux("capture-pane", "-p", "-J", "-S", "-") }

// await waits until the terminal shows all texts, and none of those after "!".
func (c terminal) await(texts ...string) {
	c.t.Helper()
	defer func() {
		if c.t.Failed() {
			c.t.Log(c.all())
		}
	}()
	await(c.t, strings.Join(texts, " and "), func() bool {
		shown := c.screen()
		for _, text := range texts {
			absent, not := strings.CutPrefix(text, "!")
			if strings.Contains(shown, absent) == not {
				return false
			}
		}
		return true
	})
}

// awaitHead waits until the view is drawn for the number of columns: its first line fills all but the last.
func (c terminal) awaitHead(columns int) {
	c.t.Helper()
	await(c.t, fmt.Sprintf("the view of %d columns", columns), func() bool {
		return slices.ContainsFunc(strings.Split(c.screen(), "\n"), func(line string) bool {
			return strings.HasPrefix(line, "── ") && strings.HasSuffix(line, "? keys ──") && utf8.RuneCountInString(line) == columns-1
		})
	})
}

// close ends the terminal and its shell.
func (c terminal) close(s scene) {
	c.t.Helper()
	c.tmux("kill-server")
	await(c.t, "the shell to end", func() bool { return len(processesWith(c.t, s.mark)) == 0 })
}

// usable fails the test unless the terminal is in the state that the shell needs.
func (c terminal) usable() {
	c.t.Helper()
	c.run("clear; stty -a")
	c.await("icanon", "!-icanon", "!-echo ", "!-isig", "!-opost")
	if shown := c.tmux("display-message", "-p", "#{cursor_flag} #{alternate_on} #{insert_flag} #{wrap_flag} #{mouse_any_flag} #{keypad_flag}"); shown != "1 0 0 1 0 0\n" {
		c.t.Errorf("modes of the terminal: %s", shown)
	}
}

// pid returns ralph's process id, found by its command.
func (s scene) pid(t testing.TB, command string) int {
	t.Helper()
	for _, p := range processesWith(t, s.mark) {
		if strings.Contains(p.args, command) && strings.HasPrefix(filepath.Base(strings.Fields(p.args)[0]), "ralph") {
			return p.pid
		}
	}
	t.Fatalf("no ralph %s runs", command)
	return 0
}

// looked is a script whose agents commit, print text that no terminal must act on, and wait.
func looked(dir string) string {
	return strings.ReplaceAll(`
issues:
  "*":
    - - write: {path: one.txt, text: one}
      - commit: One
      - run: printf 'evil \033[2J\033]0;title\007\342\200\256abc \346\227\245\346\234\254 e\314\201\n'
      - touch: DIR/{{key}}
      - wait: DIR/go
      - say: <promise>COMPLETE</promise>
`, "DIR", dir)
}

// chosen returns the run that the view has selected, and the other one of two.
func (c terminal) chosen(keys []string) (first, other string) {
	if strings.Contains(c.screen(), "› "+keys[0]) {
		return keys[0], keys[1]
	}
	return keys[1], keys[0]
}

// A sweep on a terminal: active runs can be seen, inspected and stopped, and printed text stays.
func TestTerminalView(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, r := newScene(t, looked(dir)), newRepository(t)
	keys := r.backlog(t, 2)
	c := s.terminal(t, r, 80, 30)
	c.run("ralph work --parallel 2 --publish branch")
	c.await("2 working", "iteration 1", "evil [2J]0;titleabc 日本 e", "? keys")
	awaitFile(t, filepath.Join(dir, keys[0]))
	awaitFile(t, filepath.Join(dir, keys[1]))
	first, other := c.chosen(keys)
	c.keys("?")
	c.await("enter log", "Ctrl-C stop all")
	c.keys("?", "Down", "Enter")
	c.await("!Ctrl-C stop all", "── log of "+other, "message     evil")
	c.keys("d")
	c.await("── diff of " + other)
	c.keys("q", "Up", "d")
	c.await("── diff of " + first)
	c.keys("Escape")
	c.await("2 working", "!diff of")
	for _, width := range []int{40, 200, 80} {
		c.tmux("resize-window", "-x", strconv.Itoa(width), "-y", "30")
		c.awaitHead(width)
		c.await("2 working", "evil [2J]0;title")
	}
	c.keys("s")
	c.await("Stop " + first + "? Its work is kept. y/n")
	c.keys("y")
	c.await(first+"  interrupted", "1 working", "1 unsuccessful")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.await("2 issues worked", "\n$", "!? keys", "!working")
	text := c.all()
	for _, want := range []string{first + "  started", other + "  started", other + "  succeeded  1 commit on"} {
		if n := strings.Count(text, want); n != 1 {
			t.Errorf("%q stands there %d times:\n%s", want, n, text)
		}
	}
	c.usable()
	c.close(s)
	s.clean(t, r)
}

// Ctrl-Z and fg, leaving the view, Ctrl-C, and a killed ralph all restore the terminal.
func TestTerminalGivenBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, r := newScene(t, looked(dir)), newRepository(t)
	key := r.backlog(t, 1)[0]
	c := s.terminal(t, r, 80, 24, "NO_COLOR=1")
	c.run("ralph work")
	c.await("1 working", "iteration 1")
	awaitFile(t, filepath.Join(dir, key))
	c.keys("C-z")
	c.await("Stopped", "!1 working")
	c.usable()
	c.run("fg")
	c.await("1 working", "iteration 1")
	if text := c.tmux("capture-pane", "-p", "-e"); strings.Contains(text, "\x1b") {
		t.Errorf("there are colours: %q", text)
	}
	c.keys("q")
	c.await("Leave the view?")
	c.keys("n", "q", "y")
	c.await("!1 working")
	c.keys("C-c")
	c.await("stopping: agents get 30s to end", key+"  interrupted", "ralph: interrupted")
	c.usable()

	if err := os.Remove(filepath.Join(dir, key)); err != nil {
		t.Fatal(err)
	}
	c.run("clear; ralph work")
	c.await("1 working", "iteration 1")
	awaitFile(t, filepath.Join(dir, key))
	if err := syscall.Kill(s.pid(t, "work"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.await("Killed")
	c.usable()
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.run("clear; ralph work --plain; echo status $?")
	c.await("status 0")
	if text := c.all(); strings.Contains(text, "? keys") {
		t.Errorf("lines were asked for:\n%s", text)
	}
	c.close(s)
	s.clean(t, r)
}

// ralph top shows the runs of other ralph processes: those of the repository, and of a service.
func TestTop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, r := newScene(t, looked(dir)), newRepository(t)
	keys := r.backlog(t, 2)
	socket := filepath.Join(t.TempDir(), "api")
	p := s.start(t, r, nil, "serve", "--listen", "unix:"+socket, "--parallel", "2")
	for _, key := range keys {
		awaitFile(t, filepath.Join(dir, key))
	}
	c := s.terminal(t, r, 40, 24)
	c.run("ralph top")
	c.await("2 working", "iter 1", "    evil [2J")
	first, _ := c.chosen(keys)
	c.keys("d")
	c.await("diff of "+first, "+one")
	c.keys("q", "q")
	c.await("!2 working")
	c.usable()

	name := filepath.Base(string(r))
	c.tmux("resize-window", "-x", "100", "-y", "24")
	c.run("clear; cd /; ralph top unix:" + socket)
	c.await("2 working", "iteration 1", "evil [2J", "› "+name+"/")
	first, other := c.chosen([]string{name + "/" + keys[0], name + "/" + keys[1]})
	c.keys("d")
	c.await("diff of "+first, "+one")
	c.keys("q", "s")
	c.await("Stop " + first)
	c.keys("y")
	c.await(first+"  interrupted", "1 working")
	lines := s.terminal(t, r, 80, 24)
	lines.run("ralph top | cat")
	lines.await(filepath.Base(other) + "  working")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.await(other+"  succeeded", "0 working")
	c.keys("C-c")
	c.await("!0 working", "\n$")
	c.usable()
	lines.await(filepath.Base(other) + "  succeeded")
	lines.keys("C-c")
	lines.await("^C", "\n$")
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if status := p.end(t); status != 0 {
		t.Errorf("status %d", status)
	}
}
