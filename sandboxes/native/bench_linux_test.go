package native_test

import (
	"context"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/native"
)

func owner(t *testing.T, path string) uint32 {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Uid
}

// BenchmarkStart compares opening a sandbox, running true and closing it with other programs that do part of that.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	b.Run("native", func(b *testing.B) {
		p := native.New(native.Config{})
		n := 0
		for b.Loop() {
			n++
			box, err := p.Open(b.Context(), sandboxes.Spec{Run: "bench-" + strconv.Itoa(n), Worktree: dir})
			if err != nil {
				b.Fatal(err)
			}
			mustRun(b, box)
			if err := box.Close(context.WithoutCancel(b.Context())); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, argv := range map[string][]string{
		"unshare": {"unshare", "-Urmpinuf", "--mount-proc", "true"},
		"bwrap":   {"bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "true"},
	} {
		if _, err := exec.LookPath(argv[0]); err != nil {
			continue // nothing to compare with
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if out, err := exec.CommandContext(b.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
			}
		})
	}
}

// BenchmarkExec compares a command in a sandbox with one on the host.
func BenchmarkExec(b *testing.B) {
	box, err := native.New(native.Config{}).Open(b.Context(), sandboxes.Spec{Run: "bench-exec", Worktree: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = box.Close(context.WithoutCancel(b.Context())) }()
	b.Run("native", func(b *testing.B) {
		for b.Loop() {
			mustRun(b, box)
		}
	})
	b.Run("host", func(b *testing.B) {
		for b.Loop() {
			if err := exec.CommandContext(b.Context(), "true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func mustRun(b *testing.B, box sandboxes.Sandbox) {
	b.Helper()
	if exit, err := box.Exec(b.Context(), sandboxes.Command{Argv: []string{"true"}}); err != nil || !exit.OK() {
		b.Fatal(exit, err)
	}
}
