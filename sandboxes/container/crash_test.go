package container_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
)

// untilKilled is a ralph that runs a command until it is killed.
func untilKilled() int {
	ctx := context.Background()
	r := rigs()[os.Getenv(engineVar)]
	box, err := container.New(r.engine, container.Config{
		Image: os.Getenv(imageVar), Helper: container.Helper{Path: os.Getenv(helperVar)},
		StateDir: os.Getenv(stateVar), Runtime: r.runtime, Unbounded: r.unbounded,
	}).Open(ctx, sandboxes.Spec{Run: os.Getenv(crashVar), Worktree: os.Getenv(worktreeVar)})
	if err == nil {
		_, err = box.Exec(ctx, sandboxes.Command{Argv: []string{"sh", "-c", "exec 9>life; echo ready >&9; exec sleep 100"}})
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// A ralph that is killed leaves its container; the next one's Reap removes it, and the files that it was shown.
func TestReapAfterACrash(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"docker", "podman", "runsc"} {
		t.Run(name, func(t *testing.T) {
			require(t, name)
			t.Parallel()
			r := rigs()[name]
			c := r.config(t)
			dir, run := folder(t), fmt.Sprintf("crash-%s-%d", name, os.Getpid())
			life := filepath.Join(dir, "life")
			if err := unix.Mkfifo(life, 0o666); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(life, 0o666); err != nil {
				t.Fatal(err)
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			ctx, crash := context.WithCancelCause(t.Context())
			defer crash(nil)
			ended := make(chan error, 1)
			said := proc.NewTail(1 << 10)
			go func() {
				// Only this program's group is killed: what it has started is in others.
				_, err := proc.Run(ctx, proc.Spec{
					Argv: []string{self}, Dir: dir, Stderr: said,
					Env: append(os.Environ(), crashVar+"="+run, engineVar+"="+name, worktreeVar+"="+dir,
						stateVar+"="+c.StateDir, helperVar+"="+c.Helper.Path),
				})
				ended <- err
			}()
			// Our own write end lets the first open succeed; the command's line says that it runs.
			fifo, err := os.OpenFile(life, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = fifo.Close() }()
			heard := make(chan error, 1)
			go func() {
				_, err := fifo.Read(make([]byte, len("ready\n")))
				heard <- err
			}()
			select {
			case err := <-heard:
				if err != nil {
					t.Fatal(err)
				}
			case err := <-ended:
				_, _ = fifo.WriteString("x") // lets the reader go
				t.Fatalf("the ralph to be killed ended by itself: %v, %s", err, said)
			}
			crash(errors.New("crash"))
			if err := <-ended; err == nil {
				t.Error("the ralph to be killed ended by itself")
			}

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
