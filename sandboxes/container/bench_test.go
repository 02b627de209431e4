package container_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
)

// BenchmarkSandbox measures opening with closing, and one command, against the engine's own run and exec.
func BenchmarkSandbox(b *testing.B) {
	helper, err := helper()
	if err != nil {
		b.Fatal(err)
	}
	for name, r := range rigs() {
		if strings.HasPrefix(name, "podman-rootless") || !slices.Contains(strings.Split(os.Getenv(enginesVar), ","), strings.TrimSuffix(name, copying)) {
			continue
		}
		image := os.Getenv(imageVar)
		dir := b.TempDir()
		for _, d := range []string{dir, filepath.Dir(dir)} {
			if err := os.Chown(d, 1000, 1000); err != nil {
				b.Fatal(err)
			}
		}
		p := container.New(r.engine, container.Config{
			Image: image, Helper: container.Helper{Path: helper}, StateDir: b.TempDir(), Runtime: r.runtime, Files: r.files,
		})
		runtime := []string{}
		if r.runtime != "" {
			runtime = []string{"--runtime", r.runtime}
		}
		engine := func(b *testing.B, args ...string) {
			b.Helper()
			exit, err := proc.Run(b.Context(), proc.Spec{Argv: append([]string{r.engine.Name}, args...), Dir: "/", Env: os.Environ()})
			if err != nil || exit.Code != 0 {
				b.Fatalf("%q: %+v, %v", args, exit, err)
			}
		}
		open := func(b *testing.B, n int) sandboxes.Sandbox {
			b.Helper()
			box, err := p.Open(b.Context(), sandboxes.Spec{Run: fmt.Sprintf("bench-%s-%d", name, n), Worktree: dir})
			if err != nil {
				b.Fatal(err)
			}
			return box
		}
		b.Run(name+"/open and close", func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				if err := open(b, n).Close(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/bare run and rm", func(b *testing.B) {
			for b.Loop() {
				engine(b, slices.Concat([]string{"run", "--detach", "--init", "--name", "ralph-bench", "--network", "none", "--pull", "never"}, runtime, []string{image, "sleep", "100"})...)
				engine(b, "rm", "--force", "ralph-bench")
			}
		})
		b.Run(name+"/exec", func(b *testing.B) {
			box := open(b, -1)
			for b.Loop() {
				if exit, err := box.Exec(b.Context(), sandboxes.Command{Argv: []string{"true"}}); err != nil || !exit.OK() {
					b.Fatal(exit, err)
				}
			}
			if err := box.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
		b.Run(name+"/bare exec", func(b *testing.B) {
			engine(b, slices.Concat([]string{"run", "--detach", "--init", "--name", "ralph-bench", "--network", "none", "--pull", "never"}, runtime, []string{image, "sleep", "100"})...)
			for b.Loop() {
				engine(b, "exec", "-i", "ralph-bench", "true")
			}
			engine(b, "rm", "--force", "ralph-bench")
		})
	}
}
