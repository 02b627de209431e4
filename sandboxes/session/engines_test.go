package session_test

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
	"github.com/ralph-pool/ralph/sandboxes/session"
)

// engines runs a test on real containers whose files are mounted, and on such whose files are copied. e2e/engines/start.sh
// starts the engines; where RALPH_TEST_ENGINES names one and it does not work, this fails.
func engines(t *testing.T, test func(t *testing.T, p sandboxes.Provider)) {
	t.Helper()
	t.Parallel()
	for name, engine := range map[string]container.Engine{
		"docker": container.Docker(), "docker-copy": container.Docker(), "podman-copy": container.Podman(),
	} {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(strings.Split(os.Getenv("RALPH_TEST_ENGINES"), ","), engine.Name) {
				t.Skipf("RALPH_TEST_ENGINES does not name %s; start it with e2e/engines/start.sh and source the file that it names", engine.Name)
			}
			t.Parallel()
			c := container.Config{
				Image: os.Getenv("RALPH_TEST_IMAGE"), Helper: container.Helper{Path: helper(t)}, StateDir: open(t, t.TempDir()),
			}
			if strings.HasSuffix(name, "-copy") {
				c.Files = sandboxes.Copy
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

func TestDocker(t *testing.T) {
	t.Parallel()
	p := docker(t)
	dir := repository(t, map[string]string{"f": "1\n"})
	open(t, filepath.Dir(dir))
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, 4321, 4321)
	})
	if err != nil {
		t.Fatal(err)
	}
	s := prepare(t, session.Config{Provider: p, Spec: spec(dir), Outputs: []string{"in/*"}})
	if err := s.Workspace.PutFile("in/note", "put"); err != nil {
		t.Fatal(err)
	}
	sh(t, s, "echo more >>in/note; echo x >in/other; echo 2 >f; git commit -qam two; echo 3 >f")
	a := collect(t, s)
	if a.Diff.Missing+a.Diff.Incomplete != "" || !bytes.Contains(a.Diff.Text, []byte("\n-1\n+3\n")) || !bytes.Contains(a.Diff.Text, []byte("+putmore")) {
		t.Errorf("%+v\n%s", a.Diff, a.Diff.Text)
	}
	if len(a.Files) != 2 || string(a.Files[0].Content) != "putmore\n" {
		t.Errorf("files %+v", a.Files)
	}
}
