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
