package sandboxes_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

func TestNoneConforms(t *testing.T) {
	t.Parallel()
	denied := []string{
		"GITEA_TOKEN", "CI_JOB_JWT_V2", "RALPH_GITHUB_TOKEN", "RALPH_API_SECRET",
		"SSH_AUTH_SOCK", "GIT_ASKPASS", "GIT_DIR", "GIT_INDEX_FILE", "GIT_CONFIG_KEY_0", "MY_OWN",
	}
	inherited := []string{"ANTHROPIC_API_KEY=model key", "RALPH_MODEL=opus", "GIT_AUTHOR_NAME=A B"}
	host := []string{"PATH=" + os.Getenv("PATH")}
	for _, name := range denied {
		host = append(host, name+"=secret")
	}
	host = append(host, inherited...)
	sandboxtest.Run(t, func(*testing.T) sandboxes.Provider {
		return sandboxes.NewNone(sandboxes.NoneConfig{Env: host, Deny: []string{"MY_OWN", "CI_JOB_JWT*"}})
	}, sandboxtest.Options{Denied: denied, Inherited: inherited})
}

// open opens a sandbox in a new folder.
func open(t *testing.T, c sandboxes.NoneConfig) sandboxes.Sandbox {
	t.Helper()
	box, err := sandboxes.NewNone(c).Open(t.Context(), sandboxes.Spec{Run: t.Name(), Worktree: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return box
}

func TestNoneRefusesToOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		spec sandboxes.Spec
		want string
	}{
		{
			"isolation", sandboxes.Spec{Run: "r", Worktree: dir, RequireIsolation: true},
			"sandbox none does not isolate: sandbox cannot do this",
		},
		{"no run", sandboxes.Spec{Worktree: dir}, "open sandbox none: the run has no id"},
		{
			"relative", sandboxes.Spec{Run: "r", Worktree: "here"},
			`open sandbox none: worktree "here" is not a clean absolute path`,
		},
		{"file", sandboxes.Spec{Run: "r", Worktree: file}, "open sandbox none: worktree " + file + " is not a folder"},
		{
			"missing", sandboxes.Spec{Run: "r", Worktree: dir + "/gone"},
			"open sandbox none: worktree: stat " + dir + "/gone: no such file or directory",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := sandboxes.NewNone(sandboxes.NoneConfig{}).Open(t.Context(), tt.spec)
			if err == nil || err.Error() != tt.want {
				t.Errorf("error is %v, want %s", err, tt.want)
			}
		})
	}
}

// A zero provider would start every command without the host's environment, even without PATH.
func TestNoneIsMadeWithNewNone(t *testing.T) {
	t.Parallel()
	const want = "sandbox none: make it with sandboxes.NewNone"
	zero := new(sandboxes.None)
	if err := zero.Check(t.Context()); err == nil || err.Error() != want {
		t.Errorf("Check: %v, want %s", err, want)
	}
	if _, err := zero.Open(t.Context(), sandboxes.Spec{Run: "r", Worktree: t.TempDir()}); err == nil || err.Error() != want {
		t.Errorf("Open: %v, want %s", err, want)
	}
	open(t, sandboxes.NoneConfig{Env: []string{}}) // an empty environment is possible
}

func TestNoneDenyPatterns(t *testing.T) {
	t.Parallel()
	box := open(t, sandboxes.NoneConfig{
		Env:  []string{"PATH=" + os.Getenv("PATH"), "MY_A_KEY=1", "MY_KEY=2", "MY_KEYS=3", "OTHER=4", "broken", "=odd"},
		Deny: []string{"MY_*_KEY", "OTHER"},
	})
	var out bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"env"}, Stdout: &out})
	if err != nil || !exit.OK() {
		t.Fatal(exit, err)
	}
	for _, want := range []string{"MY_KEY=2\n", "MY_KEYS=3\n", "PWD=" + box.Workdir() + "\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in %s", want, &out)
		}
	}
	for _, not := range []string{"MY_A_KEY", "OTHER", "broken", "odd"} {
		if strings.Contains(out.String(), not) {
			t.Errorf("%q is in %s", not, &out)
		}
	}
}

func TestNoneSaysWhyAProgramDoesNotStart(t *testing.T) {
	t.Parallel()
	box := open(t, sandboxes.NoneConfig{Env: []string{"PATH=/nowhere"}})
	_, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"claude"}})
	if want := "start claude: executable file not found in $PATH (PATH is /nowhere)"; err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
	if !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("error %v does not wrap exec.ErrNotFound", err)
	}
	_, err = box.Exec(t.Context(), sandboxes.Command{Argv: []string{"/bin/sh"}, Dir: box.Workdir() + "/gone"})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "its folder") {
		t.Errorf("error is %v, want one about the folder", err)
	}
}

// Closing a sandbox twice does not end the processes of a new sandbox with the same run id.
func TestNoneCloseTwiceSparesASuccessor(t *testing.T) {
	t.Parallel()
	p := sandboxes.NewNone(sandboxes.NoneConfig{})
	spec := sandboxes.Spec{Run: t.Name(), Worktree: t.TempDir()}
	first, err := p.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, err := p.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	exit, err := second.Exec(t.Context(), sandboxes.Command{
		Argv: []string{"cat"}, Stdin: readerFunc(func() { _ = first.Close(context.WithoutCancel(t.Context())) }),
	})
	if err != nil || !exit.OK() {
		t.Errorf("the successor's command: %+v, %v", exit, err)
	}
	if err := second.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// readerFunc is an empty input that calls a function when it is read.
type readerFunc func()

func (f readerFunc) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

// Reap ends the command of a ralph process that was killed.
func TestNoneReapsAfterACrash(t *testing.T) {
	t.Parallel()
	dir, run := t.TempDir(), t.Name()
	life := filepath.Join(dir, "life")
	if err := unix.Mkfifo(life, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, crash := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		// Without a mark, proc kills only this program's process group; the command is in another group.
		_, err := proc.Run(ctx, proc.Spec{Argv: []string{self}, Dir: dir, Env: append(os.Environ(), crashing+"="+run)})
		done <- err
	}()
	fifo, err := os.Open(life) // Open returns when the command has opened its end.
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fifo.Close() }()
	ready := make([]byte, len("ready\n"))
	if _, err := fifo.Read(ready); err != nil {
		t.Fatal(err)
	}
	crash(errors.New("crash"))
	if err := <-done; err == nil {
		t.Error("the program was to be killed")
	}

	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	token, err := proc.Started(pid)
	if err != nil || !proc.Alive(pid, token) {
		t.Fatalf("the command did not outlive the crash: %v", err)
	}
	if err := sandboxes.NewNone(sandboxes.NoneConfig{}).Reap(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if proc.Alive(pid, token) {
		t.Error("the command is alive after Reap")
	}
}

func TestStartErrorNamesTheProgramOnce(t *testing.T) {
	t.Parallel()
	err := &sandboxes.StartError{Argv0: "a/b", Err: errors.New("a/b: no such file or directory")}
	if got, want := err.Error(), "start a/b: no such file or directory"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
