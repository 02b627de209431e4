package container_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
)

// Names of the environment that e2e/engines/start.sh sets.
const (
	enginesVar  = "RALPH_TEST_ENGINES"
	imageVar    = "RALPH_TEST_IMAGE"
	rootlessVar = "RALPH_TEST_ROOTLESS"
)

// Names by which a test starts this binary as another program.
const (
	helperVar = "CONTAINER_TEST_HELPER" // holds the helper's path
	crashVar  = "CONTAINER_TEST_CRASH"  // be a ralph that is killed; holds what it does
)

func TestMain(m *testing.M) {
	if status, inside := attack(); inside {
		os.Exit(status)
	}
	if os.Getenv(crashVar) != "" {
		os.Exit(untilKilled())
	}
	dir, err := os.MkdirTemp("", "ralph-container-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = dir
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// scratch is a folder that every user of the machine may look into, for as long as the tests run.
var scratch string

// helper is the program that is mounted into containers, built once.
var helper = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(helperVar); path != "" {
		return path, nil
	}
	if err := os.Chmod(scratch, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(scratch, "inside")
	var out bytes.Buffer
	exit, err := proc.Run(context.Background(), proc.Spec{
		Argv:   []string{"go", "build", "-trimpath", "-o", path, "./testdata/inside"},
		Env:    append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux"),
		Stdout: &out, Stderr: &out,
	})
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("build the helper: %s", &out)
	}
	return path, err
})

// require skips a test of an engine that this run does not have. Where the variable names the engine it never skips:
// then an engine that does not work is a failure.
func require(t *testing.T, engine string) {
	t.Helper()
	if !slices.Contains(strings.Split(os.Getenv(enginesVar), ","), strings.TrimSuffix(engine, copying)) {
		t.Skipf("%s does not name %s; start it with e2e/engines/start.sh and source the file that it names", enginesVar, engine)
	}
}

// rig is one engine of the tests.
type rig struct {
	engine    container.Engine
	runtime   string
	unbounded bool
	files     sandboxes.Files
}

// copying ends the names of rigs whose files are copied.
const copying = "-copy"

func rigs() map[string]rig {
	return map[string]rig{
		"docker":          {engine: container.Docker()},
		"runsc":           {engine: container.Docker(), runtime: "runsc"},
		"podman":          {engine: container.Podman()},
		"podman-rootless": {engine: container.Podman(), unbounded: true},

		"docker" + copying:          {engine: container.Docker(), files: sandboxes.Copy},
		"runsc" + copying:           {engine: container.Docker(), runtime: "runsc", files: sandboxes.Copy},
		"podman" + copying:          {engine: container.Podman(), files: sandboxes.Copy},
		"podman-rootless" + copying: {engine: container.Podman(), unbounded: true, files: sandboxes.Copy},
	}
}

// config is what a test starts from.
func (r rig) config(t *testing.T) container.Config {
	t.Helper()
	path, err := helper()
	if err != nil {
		t.Fatal(err)
	}
	return container.Config{
		Image: os.Getenv(imageVar), Helper: container.Helper{Path: path}, StateDir: filepath.Join(t.TempDir(), "state"),
		Runtime: r.runtime, Unbounded: r.unbounded, Files: r.files,
	}
}

// folder makes one that belongs to who commands run as.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if os.Getuid() == 0 {
		for _, d := range []string{dir, filepath.Dir(dir)} {
			if err := os.Chown(d, 1000, 1000); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// share shows a folder of the host inside, at the same path: tests watch processes through what is in it. The engines of
// the tests can mount, also for providers that do not.
func share(t *testing.T, c *container.Config) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ralph-shared-") //nolint:usetesting // one that lasts as long as the sandboxes
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c.Args = append(c.Args, "--volume", dir+":"+dir)
	return dir
}
