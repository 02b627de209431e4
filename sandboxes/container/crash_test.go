package container_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
)

// crash is what a ralph that is to be killed does.
type crash struct {
	Rig    string
	Config container.Config
	Spec   sandboxes.Spec
	Script string
}

// untilKilled is that ralph. Its standard output is what the script prints.
func untilKilled() int {
	var what crash
	err := json.Unmarshal([]byte(os.Getenv(crashVar)), &what)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	box, err := container.New(rigs()[what.Rig].engine, what.Config).Open(ctx, what.Spec)
	if err == nil {
		_, err = box.Exec(ctx, sandboxes.Command{Argv: []string{"sh", "-c", what.Script}, Stdout: os.Stdout})
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// happen returns when the script had said "ready" and its ralph was killed.
func (c crash) happen(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancelCause(t.Context())
	defer kill(nil)
	heard, saying := io.Pipe()
	said := proc.NewTail(1 << 10)
	ended := make(chan error, 1)
	go func() {
		// Only this program's group is killed: what it has started is in others.
		_, err := proc.Run(ctx, proc.Spec{
			Argv: []string{self}, Dir: "/", Stdout: saying, Stderr: said, Env: append(os.Environ(), crashVar+"="+string(text)),
		})
		_ = saying.Close()
		ended <- err
	}()
	line, err := bufio.NewReader(heard).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("the ralph to be killed says %q, %v: %v, %s", line, err, <-ended, said)
	}
	kill(errors.New("crash"))
	if err := <-ended; err == nil {
		t.Error("the ralph to be killed ended by itself")
	}
}

// A ralph that is killed leaves its container; the next one's Reap removes it, and the files that it was shown.
func TestReapAfterACrash(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"docker", "podman", "runsc", "runsc" + copying} {
		t.Run(name, func(t *testing.T) {
			require(t, name)
			t.Parallel()
			r := rigs()[name]
			c := r.config(t)
			dir, run := folder(t), fmt.Sprintf("crash-%s-%d", name, os.Getpid())
			crash{Rig: name, Config: c, Spec: sandboxes.Spec{Run: run, Worktree: dir}, Script: "echo ready; exec sleep 100"}.happen(t)

			p := container.New(r.engine, c)
			if got := containers(t, r.engine.Name, run); got == "" {
				t.Fatal("the crash left no container")
			}
			if err := p.Reap(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			if got := containers(t, r.engine.Name, run); got != "" {
				t.Errorf("left after Reap: %s", got)
			}
			if files, err := os.ReadDir(c.StateDir); err != nil || len(files) > 0 {
				t.Errorf("files left after Reap: %v, %v", files, err)
			}
		})
	}
}

// containers lists those of a run.
func containers(t *testing.T, engine, run string) string {
	t.Helper()
	return engineSays(t, engine, "ps", "--all", "--filter", "label=ralph.run="+run, "--format", "{{.Names}}")
}

// engineSays is what an engine's program prints.
func engineSays(t *testing.T, engine string, args ...string) string {
	t.Helper()
	var out strings.Builder
	exit, err := proc.Run(t.Context(), proc.Spec{
		Argv: append([]string{engine}, args...), Dir: "/", Env: os.Environ(), Stdout: &out, Stderr: &out,
	})
	if err != nil || exit.Code != 0 {
		t.Fatalf("%s %q: %+v, %v: %s", engine, args, exit, err, out.String())
	}
	return strings.TrimSpace(out.String())
}
