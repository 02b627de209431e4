package container_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
	"github.com/ralph-pool/ralph/sandboxes/container/containertest"
)

// BenchmarkSandbox compares opening and closing, and one command, with the engine's own run and exec.
func BenchmarkSandbox(b *testing.B) {
	helper, err := helper()
	if err != nil {
		b.Fatal(err)
	}
	for name, r := range rigs() {
		if strings.HasPrefix(name, "podman-rootless") || !containertest.Named(strings.TrimSuffix(name, copySuffix)) {
			continue
		}
		image := os.Getenv(containertest.ImageVar)
		dir := b.TempDir()
		for _, d := range []string{dir, filepath.Dir(dir)} {
			if err := os.Chown(d, 1000, 1000); err != nil {
				b.Fatal(err)
			}
		}
		p := r.provider(container.Config{
			Image: image, Helper: helper, StateDir: b.TempDir(), Runtime: r.runtime,
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
		home := ""
		open := func(b *testing.B, n int) sandboxes.Sandbox {
			b.Helper()
			box, err := p.Open(b.Context(), sandboxes.Spec{Run: fmt.Sprintf("bench-%s-%d", name, n), Worktree: dir, Home: home})
			if err != nil {
				b.Fatal(err)
			}
			if cold, ok := sandboxes.As[sandboxes.HomeReporter](box); ok && cold.EmptyHomeReason() != "" {
				b.Fatal(cold.EmptyHomeReason())
			}
			return box
		}
		openAndClose := func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				if err := open(b, n).Close(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.Run(name+"/open and close", openAndClose)
		if !r.copies {
			home = largeHome(b)
			b.Run(name+"/open and close with a home of 10,000 files", openAndClose)
			home = ""
		}
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

// largeHome returns a home with 10,000 files of 115 MB in total, like that of module and build caches.
func largeHome(b *testing.B) string {
	b.Helper()
	home := b.TempDir()
	text := make([]byte, 115<<20/10_000)
	for i := range 10_000 {
		dir := filepath.Join(home, "cache", fmt.Sprintf("%02x", i%256))
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), text, 0o644)); err != nil {
			b.Fatal(err)
		}
	}
	return home
}
