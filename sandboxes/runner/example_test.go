package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
	"github.com/ralph-pool/ralph/sandboxes/image"
	"github.com/ralph-pool/ralph/sandboxes/runner"
	"github.com/ralph-pool/ralph/sandboxes/session"
)

// A runner starts a sandbox, runs commands in it, and leaves a record.
func Example() {
	dir, err := os.MkdirTemp("", "runner-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	workspace := filepath.Join(dir, "workspace")
	if err := os.Mkdir(workspace, 0o700); err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	in, err := runner.Start(ctx, runner.Config{
		// "none" runs everywhere and isolates nothing; package native and package container isolate.
		Session: session.Config{
			Provider: sandboxes.NewNone(sandboxes.NoneConfig{}),
			Spec:     sandboxes.Spec{Worktree: workspace},
		},
		Network:   runner.NetworkOpen, // "none" cannot close the network, and a runner refuses to pretend otherwise
		Artefacts: filepath.Join(dir, "artefacts"),
		HostEnv:   []string{"DEPLOY_TOKEN=abc-123-xyz"},
		EnvAllow:  []string{"DEPLOY_TOKEN"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = in.Close(ctx) }()

	if _, err := in.CommandPrefix(); errors.Is(err, sandboxes.ErrUnsupported) {
		fmt.Println(err)
	}
	exit, err := in.Exec(ctx, sandboxes.Command{Argv: []string{"sh", "-c", `echo "deploy with $DEPLOY_TOKEN"`}})
	if err != nil {
		fmt.Println(err)
		return
	}
	log, err := os.ReadFile(filepath.Join(dir, "artefacts", "logs", "0001.stdout"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d %s", exit.Code, log)
	// Output:
	// sandbox none has no command prefix: sandbox cannot do this; run the command through the session
	// 0 deploy with [secret]
}

// An image is rebuilt when its content has changed.
func ExampleImage() {
	ctx := context.Background()
	const folder = "/srv/project"
	in, err := runner.Start(ctx, runner.Config{
		Image: &runner.Image{
			Name:   "project-agent",
			Engine: image.Engine{Name: "docker"},
			Build:  image.Build{Context: folder},
			Provider: func(tag string) sandboxes.Provider {
				return container.New(container.Docker(), container.Config{Image: tag})
			},
		},
		Session: session.Config{Spec: sandboxes.Spec{
			Worktree: folder,
			Mounts:   []sandboxes.Mount{{Host: "/srv/data", Inside: "/data", ReadOnly: true}},
			Limits:   sandboxes.Limits{Memory: 2 << 30, CPUs: 1, PIDs: 256},
		}},
		Artefacts: "/srv/artefacts/1",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = in.Close(ctx) }()
	if _, err := in.Exec(ctx, sandboxes.Command{Argv: []string{"make", "test"}}); err != nil {
		fmt.Println(err)
	}
}
