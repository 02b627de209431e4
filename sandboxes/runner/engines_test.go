package runner_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
	"github.com/ralph-pool/ralph/sandboxes/copying"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

// engines runs a test on real containers whose files are mounted, and on such whose files are copied. e2e/engines/start.sh
// starts the engines; where RALPH_TEST_ENGINES names one and it does not work, this fails.
func engines(t *testing.T, test func(t *testing.T, p sandboxes.Provider)) {
	t.Helper()
	t.Parallel()
	named, program := strings.Split(os.Getenv("RALPH_TEST_ENGINES"), ","), ""
	if slices.Contains(named, "docker") || slices.Contains(named, "podman") {
		program = helper(t)
	}
	for name, engine := range map[string]container.Engine{
		"docker": container.Docker(), "docker-copy": container.Docker(), "podman-copy": container.Podman(),
	} {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(named, engine.Name) {
				t.Skipf("RALPH_TEST_ENGINES does not name %s; start it with e2e/engines/start.sh and source the file that it names", engine.Name)
			}
			t.Parallel()
			c := container.Config{
				Image: os.Getenv("RALPH_TEST_IMAGE"), Helper: container.Helper{Path: program}, StateDir: open(t, t.TempDir()),
			}
			if strings.HasSuffix(name, "-copy") {
				test(t, copying.Wrap(container.New(engine, c)))
				return
			}
			test(t, container.New(engine, c))
		})
	}
}

// helper builds the program that works inside.
func helper(t *testing.T) string {
	t.Helper()
	path := filepath.Join(open(t, t.TempDir()), "inside")
	var out bytes.Buffer
	exit, err := proc.Run(t.Context(), proc.Spec{
		Argv:   []string{"go", "build", "-trimpath", "-o", path, "../container/testdata/inside"},
		Env:    append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux"),
		Stdout: &out, Stderr: &out,
	})
	if err != nil || exit.Code != 0 {
		t.Fatalf("build the helper: %v\n%s", err, &out)
	}
	return path
}

// open lets every user of the machine look into a test's folder, and changes nothing above the test's own.
func open(t *testing.T, dir string) string {
	t.Helper()
	for d := dir; d != filepath.Clean(os.TempDir()) && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Commands run as the owner of the workspace, who may write to the artefacts' files; both are on the host at the end.
func TestContainers(t *testing.T) {
	engines(t, func(t *testing.T, p sandboxes.Provider) {
		c := config(t, p)
		open(t, c.Session.Spec.Worktree)
		open(t, filepath.Dir(c.Artefacts))
		if err := os.Chown(c.Session.Spec.Worktree, 4321, 4321); err != nil {
			t.Fatal(err)
		}
		dir := open(t, t.TempDir())
		write(t, filepath.Join(dir, "f"), "mounted")
		c.Session.Spec.Mounts = []sandboxes.Mount{{Host: dir, Inside: "/data", ReadOnly: true}}
		c.Session.Spec.Limits = sandboxes.Limits{Memory: 64 << 20, PIDs: 64}
		c.EnvAllow = []string{"API_TOKEN"}
		in := start(t, c)
		if got := sh(t, in, `id -u; cat /data/f; echo " $API_TOKEN"; echo made >made; echo out >`+in.Files()+`/out`); got != "4321\nmounted host-token-1\n" {
			t.Errorf("output is %q", got)
		}
		if err := in.Fetch(t.Context(), "made"); err != nil {
			t.Fatal(err)
		}
		if got := read(t, c.Session.Spec.Worktree, "made") + read(t, c.Artefacts, "logs/0001.stdout"); got != "made\n4321\nmounted [secret]\n" {
			t.Errorf("file and log are %q", got)
		}
		prefix, err := in.CommandPrefix()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		exit, err := proc.Run(t.Context(), proc.Spec{
			Argv: append(prefix, "sh", "-c", `id -u; pwd; echo "$API_TOKEN"; echo prefixed >made; ln -s /etc/passwd `+in.Files()+`/evil; echo late >`+in.Files()+`/late`),
			Dir:  "/", Env: os.Environ(), Stdout: &out, Stderr: &out,
		})
		if want := "4321\n" + in.Workdir() + "\nhost-token-1\n"; err != nil || exit.Code != 0 || out.String() != want {
			t.Errorf("by the command prefix: %+v, %v, %q, want %q", exit, err, &out, want)
		}
		if err := errors.Join(in.Fetch(t.Context(), "made"), in.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		if got := read(t, c.Artefacts, "files/out") + read(t, c.Artefacts, "files/late") + read(t, c.Session.Spec.Worktree, "made"); got != "out\nlate\nprefixed\n" {
			t.Errorf("after Close the files are %q", got)
		}
	})
}

// A process that was killed at a limit is in the record.
func TestNoticesOfContainers(t *testing.T) {
	engines(t, func(t *testing.T, p sandboxes.Provider) {
		c := config(t, p)
		open(t, c.Session.Spec.Worktree)
		if err := os.Chown(c.Session.Spec.Worktree, 4321, 4321); err != nil {
			t.Fatal(err)
		}
		c.Session.Spec.Limits = sandboxes.Limits{Memory: 64 << 20}
		in := start(t, c)
		// Which process the kernel chooses is its affair.
		if _, err := in.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", "head -c 100000000 /dev/zero | tail"}}); err != nil {
			t.Fatal(err)
		}
		if err := in.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, _ := described(t, c.Artefacts)["notices"].([]any)
		if len(got) != 1 || !sandboxtest.Killed([]string{fmt.Sprint(got[0])}, 64<<20) {
			t.Errorf("notices are %v", got)
		}
	})
}

// described is sandbox.json.
func described(t *testing.T, artefacts string) (d map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, artefacts, "sandbox.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}
