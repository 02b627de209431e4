package runner_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
)

// docker is a provider of real containers. e2e/engines/start.sh starts the engine; where RALPH_TEST_ENGINES names it and
// it does not work, this fails.
func docker(t *testing.T) sandboxes.Provider {
	t.Helper()
	if !slices.Contains(strings.Split(os.Getenv("RALPH_TEST_ENGINES"), ","), "docker") {
		t.Skip("RALPH_TEST_ENGINES does not name docker; start it with e2e/engines/start.sh and source the file that it names")
	}
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
	return container.New(container.Docker(), container.Config{
		Image: os.Getenv("RALPH_TEST_IMAGE"), Helper: container.Helper{Path: path}, StateDir: open(t, t.TempDir()),
	})
}

// open lets every user of the machine look into a test's folder.
func open(t *testing.T, dir string) string {
	t.Helper()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Who has the workspace is who writes inside, and to the files of the artefacts.
func TestDocker(t *testing.T) {
	t.Parallel()
	c := config(t, docker(t))
	open(t, c.Spec.Worktree)
	open(t, filepath.Dir(c.Artefacts))
	if err := os.Chown(c.Spec.Worktree, 4321, 4321); err != nil {
		t.Fatal(err)
	}
	dir := open(t, t.TempDir())
	write(t, filepath.Join(dir, "f"), "mounted")
	c.Spec.Mounts = []sandboxes.Mount{{Host: dir, Inside: "/data", ReadOnly: true}}
	c.Spec.Limits = sandboxes.Limits{Memory: 64 << 20, PIDs: 64}
	c.EnvAllow = []string{"API_TOKEN"}
	in := start(t, c)
	if got := sh(t, in, `id -u; cat /data/f; echo " $API_TOKEN"; echo made >made; echo out >`+in.Files()+`/out`); got != "4321\nmounted host-token-1\n" {
		t.Errorf("output is %q", got)
	}
	if got := read(t, c.Artefacts, "files/out") + read(t, c.Spec.Worktree, "made") + read(t, c.Artefacts, "logs/0001.stdout"); got != "out\nmade\n4321\nmounted [secret]\n" {
		t.Errorf("left are %q", got)
	}
	prefix, err := in.CommandPrefix()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	exit, err := proc.Run(t.Context(), proc.Spec{Argv: append(prefix, "sh", "-c", `id -u; pwd; echo "$API_TOKEN"`), Dir: "/", Env: os.Environ(), Stdout: &out, Stderr: &out})
	if want := "4321\n" + in.Workdir() + "\nhost-token-1\n"; err != nil || exit.Code != 0 || out.String() != want {
		t.Errorf("by the command prefix: %+v, %v, %q, want %q", exit, err, &out, want)
	}
}
