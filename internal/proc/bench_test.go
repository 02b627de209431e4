package proc

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"
)

// BenchmarkRun compares proc with os/exec for a frequent operation: run git and read its output.
func BenchmarkRun(b *testing.B) {
	env := path()
	argv := []string{"git", "version"}
	b.Run("os-exec", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var out, errs bytes.Buffer
			cmd := exec.CommandContext(b.Context(), argv[0], argv[1:]...)
			cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &errs
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, mark := range map[string]string{"proc": "", "proc-marked": "bench"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var out, errs bytes.Buffer
				exit, err := Run(b.Context(), Spec{Argv: argv, Env: env, Stdout: &out, Stderr: &errs, Mark: mark})
				if err != nil || exit.Code != 0 {
					b.Fatal(exit, err)
				}
			}
		})
	}
}

// BenchmarkOutput reads a stream of 64 MiB from a process.
func BenchmarkOutput(b *testing.B) {
	const size = 64 << 20
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		lines := 0
		l := NewLines(func([]byte) { lines++ })
		_, err := Run(context.Background(), Spec{
			Argv: []string{"head", "-c", "67108864", "/dev/zero"}, Env: path(), Stdout: l,
		})
		if err != nil {
			b.Fatal(err)
		}
		_ = l.Close()
		if lines != 1 {
			b.Fatal(lines)
		}
	}
}

func BenchmarkLines(b *testing.B) {
	piece := []byte(strings.Repeat(strings.Repeat("x", 200)+"\n", 300))
	l := NewLines(func([]byte) {})
	b.SetBytes(int64(len(piece)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = l.Write(piece)
	}
}

func BenchmarkScan(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		t := tree{needle: "NO=BODY"}
		if _, _, err := t.scan(); err != nil {
			b.Fatal(err)
		}
	}
}
