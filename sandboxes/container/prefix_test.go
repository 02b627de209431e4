package container_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// A host program enters the sandbox with the command prefix, and sees the same environment as with Exec.
func TestCommandPrefix(t *testing.T) {
	real(t, func(t *testing.T, name string, r rig) {
		wt := folder(t)
		box := enter(t, r.provider(r.config(t)), sandboxes.Spec{
			Worktree: wt, Run: "prefix-" + name + filepath.Base(filepath.Dir(wt)),
			Env: []string{"ODD=1 # 'a' \"b\" $HOME \\n", "TOKEN=placeholder-3", "EMPTY="},
		})
		prefix, err := prefixer(t, box).CommandPrefix()
		if err != nil {
			t.Fatal(err)
		}
		if line := strings.Join(prefix, " "); strings.Contains(line, "placeholder-3") {
			t.Errorf("the command line shows the environment: %s", line)
		}
		const script = `pwd; id -u; id -g; echo "$HOME" "$PATH" "$ODD" "$TOKEN" "[${EMPTY-none}]"; cat`
		want, _ := inside(t, box, "exec </dev/null; "+script)
		var out bytes.Buffer
		exit, err := proc.Run(t.Context(), proc.Spec{
			Argv: append(prefix, "sh", "-c", script+"; echo made >made; exit 7"), Dir: "/", Env: os.Environ(),
			Stdin: strings.NewReader("read"), Stdout: &out, Stderr: &out,
		})
		if err != nil || exit.Code != 7 || out.String() != want+"\nread" {
			t.Errorf("%+v, %v, it prints\n%swant\n%s", exit, err, &out, want)
		}
		if _, exit := inside(t, box, "grep -qx made made"); !exit.OK() {
			t.Error("it wrote elsewhere")
		}
		if err := box.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(wt, "made")); !r.copies && (err != nil || string(text) != "made\n") {
			t.Errorf("on the host it is %q, %v", text, err)
		}
		if _, err := prefixer(t, box).CommandPrefix(); !errors.Is(err, sandboxes.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		if _, err := os.Stat(prefix[slices.Index(prefix, "--env-file")+1]); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file of the environment: %v", err)
		}
	})
}

func TestCommandPrefixThatCannotBe(t *testing.T) {
	real(t, func(t *testing.T, name string, r rig) {
		wt := folder(t)
		box := enter(t, r.provider(r.config(t)), sandboxes.Spec{
			Worktree: wt, Run: "noprefix-" + name + filepath.Base(filepath.Dir(wt)), Env: []string{"LINES=a\nSECOND=b"},
		})
		_, err := prefixer(t, box).CommandPrefix()
		if want := `the environment's "LINES" does not fit on a line of a file: sandbox cannot do this; use Exec`; err == nil || err.Error() != want {
			t.Errorf("error is %v, want %s", err, want)
		}
	})
}

func prefixer(t *testing.T, box sandboxes.Sandbox) sandboxes.Prefixer {
	t.Helper()
	p, ok := sandboxes.As[sandboxes.Prefixer](box)
	if !ok {
		t.Fatal("the sandbox is no Prefixer")
	}
	return p
}
