package image_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes/container/containertest"
	"github.com/ralph-pool/ralph/sandboxes/image"
)

// Real engines build a build file for the current user, and remove the image. e2e/engines/start.sh starts them. The test
// fails if RALPH_TEST_ENGINES names an engine that does not work.
func TestRealEngines(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"docker", "podman"} {
		t.Run(name, func(t *testing.T) {
			containertest.Require(t, name)
			t.Parallel()
			root := t.TempDir()
			file := filepath.Join(root, ".ralph", "Dockerfile")
			write(t, file, "FROM "+os.Getenv(containertest.ImageVar)+"\nARG AGENT_UID\nARG NOTE\nENV NOTE=$NOTE\nUSER ${AGENT_UID}:${AGENT_UID}\n")
			args, err := image.Args([]string{"AGENT_UID=4444", "NOTE=two words"})
			if err != nil {
				t.Fatal(err)
			}
			tag, err := image.Tag(root, file, args)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			e := image.Engine{Name: name, Stdout: &out, Stderr: &out}
			if err := e.Build(t.Context(), image.Build{File: file, Tag: tag, Context: root, Args: args}); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			if out.Len() == 0 {
				t.Error("the engine's output is lost")
			}
			var config strings.Builder
			exit, err := proc.Run(t.Context(), proc.Spec{
				Argv: []string{name, "image", "inspect", "--format", "{{.Config.User}} {{.Config.Env}}", tag}, Env: os.Environ(),
				Stdout: &config,
			})
			if err != nil || exit.Code != 0 || !strings.Contains(config.String(), "4444:4444") || !strings.Contains(config.String(), "NOTE=two words") {
				t.Errorf("the image is %q, %v", config.String(), err)
			}
			if err := e.Remove(t.Context(), tag); err != nil {
				t.Errorf("%v\n%s", err, &out)
			}
			out.Reset()
			if err := e.Remove(t.Context(), tag); !errors.Is(err, image.ErrNoImage) || out.Len() > 0 {
				t.Errorf("removing an image that is not there: %v\n%s", err, &out)
			}
		})
	}
}
