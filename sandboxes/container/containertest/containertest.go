// Package containertest gives tests access to the real container engines that e2e/engines/start.sh starts. An environment
// variable names them. A named engine that does not work is a failure; tests of others are skipped.
package containertest

import (
	"bytes"
	"context"
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
)

// EnginesVar is the environment variable with the engines' names, separated by commas.
const EnginesVar = "RALPH_TEST_ENGINES"

// ImageVar is the environment variable with the name of their image.
const ImageVar = "RALPH_TEST_IMAGE"

// Named reports whether the environment names an engine.
func Named(engine string) bool {
	return slices.Contains(strings.Split(os.Getenv(EnginesVar), ","), engine)
}

// Require skips a test if the environment does not name the engine.
func Require(t *testing.T, engine string) {
	t.Helper()
	if !Named(engine) {
		t.Skipf("%s does not name %s; start it with e2e/engines/start.sh and source the file that it names", EnginesVar, engine)
	}
}

// Build builds the program that runs inside containers.
func Build(ctx context.Context, path string) error {
	var out bytes.Buffer
	exit, err := proc.Run(ctx, proc.Spec{
		Argv:   []string{"go", "build", "-trimpath", "-o", path, "github.com/ralph-pool/ralph/sandboxes/container/testdata/inside"},
		Env:    append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux"),
		Stdout: &out, Stderr: &out,
	})
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("build the program inside: %s", &out)
	}
	return err
}

// Readable lets every user of the machine read a test's folder. It changes only folders below the temporary folder.
func Readable(t *testing.T, dir string) string {
	t.Helper()
	for d := dir; d != filepath.Clean(os.TempDir()) && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Run runs a test with mounted files, and with copied files.
func Run(t *testing.T, test func(t *testing.T, p sandboxes.Provider)) {
	t.Helper()
	t.Parallel()
	program := filepath.Join(Readable(t, t.TempDir()), "inside")
	if Named("docker") || Named("podman") {
		if err := Build(t.Context(), program); err != nil {
			t.Fatal(err)
		}
	}
	for name, engine := range map[string]container.Engine{
		"docker": container.Docker(), "docker-copy": container.Docker(), "podman-copy": container.Podman(),
	} {
		t.Run(name, func(t *testing.T) {
			Require(t, engine.Name)
			t.Parallel()
			p := container.New(engine, container.Config{
				Image: os.Getenv(ImageVar), Helper: program, StateDir: Readable(t, t.TempDir()),
			})
			if strings.HasSuffix(name, "-copy") {
				test(t, copying.Wrap(p))
				return
			}
			test(t, p)
		})
	}
}
