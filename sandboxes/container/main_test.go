package container_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
	"github.com/ralph-pool/ralph/sandboxes/container/containertest"
	"github.com/ralph-pool/ralph/sandboxes/copying"
)

// rootlessVar is the environment variable with the user for podman without root; e2e/engines/start.sh sets it.
const rootlessVar = "RALPH_TEST_ROOTLESS"

// Variables with which a test starts this binary as another program.
const (
	helperVar = "CONTAINER_TEST_HELPER" // the helper's path
	crashVar  = "CONTAINER_TEST_CRASH"  // act as a ralph that is killed; the value describes what it does
)

func TestMain(m *testing.M) {
	if status, inside := traces(); inside {
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

// scratch is a folder that every user of the machine can read, for the duration of the tests.
var scratch string

// helper returns the program that is mounted into containers. It is built once.
var helper = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(helperVar); path != "" {
		return path, nil
	}
	if err := os.Chmod(scratch, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(scratch, "inside")
	return path, containertest.Build(context.Background(), path)
})

// require skips a test of a rig whose engine is not available.
func require(t *testing.T, engine string) {
	t.Helper()
	containertest.Require(t, strings.TrimSuffix(engine, copySuffix))
}

// rig is an engine with settings for the tests.
type rig struct {
	engine    container.Engine
	runtime   string
	unbounded bool
	copies    bool
}

// everything reports whether all tests run with all engines, with mounted and with copied files, as in `make soak`.
// Otherwise each engine and each way is tested, but not each combination.
func everything() bool { return os.Getenv("RALPH_TEST_EVERYTHING") != "" }

// copySuffix is the suffix of rigs that copy files.
const copySuffix = "-copy"

func rigs() map[string]rig {
	return map[string]rig{
		"docker":          {engine: container.Docker()},
		"runsc":           {engine: container.Docker(), runtime: "runsc"},
		"podman":          {engine: container.Podman()},
		"podman-rootless": {engine: container.Podman(), unbounded: true},

		"docker" + copySuffix:          {engine: container.Docker(), copies: true},
		"runsc" + copySuffix:           {engine: container.Docker(), runtime: "runsc", copies: true},
		"podman" + copySuffix:          {engine: container.Podman(), copies: true},
		"podman-rootless" + copySuffix: {engine: container.Podman(), unbounded: true, copies: true},
	}
}

// provider returns the rig's provider.
func (r rig) provider(c container.Config) sandboxes.Provider {
	p := container.New(r.engine, c)
	if r.copies {
		return copying.Wrap(p)
	}
	return p
}

// config returns the basic configuration of a test.
func (r rig) config(t *testing.T) container.Config {
	t.Helper()
	path, err := helper()
	if err != nil {
		t.Fatal(err)
	}
	return container.Config{
		Image: os.Getenv(containertest.ImageVar), Helper: path, StateDir: filepath.Join(t.TempDir(), "state"),
		Runtime: r.runtime, Unbounded: r.unbounded,
	}
}

// folder returns a folder that belongs to the user of commands.
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

// share mounts a shared host folder at the same path inside: tests observe processes through FIFOs in it. The test engines
// support mounts, even for providers that do not use them.
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
