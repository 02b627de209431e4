package sbx_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/sbx"
)

// A real microVM passes the conformance suite as far as possible without a shared kernel: FIFOs do not connect two kernels.
// The same test runs against the shim, so that it is tested itself.
func TestLive(t *testing.T) {
	t.Parallel()
	if !slices.Contains(strings.Split(os.Getenv("RALPH_TEST_ENGINES"), ","), "sbx") {
		t.Skip("RALPH_TEST_ENGINES does not name sbx; install Docker Sandboxes, log in with sbx login, and name it")
	}
	exercise(t, sbx.New(sbx.Config{}))
}

func exercise(t *testing.T, p *sbx.Provider) {
	t.Helper()
	if err := p.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := newScene(t)
	box, err := p.Open(t.Context(), s.spec("live-"+rand.Text()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close(context.WithoutCancel(t.Context())) })

	for name, tt := range map[string]struct {
		script, in string
		env        []string
		want       sandboxes.Exit
		out, errs  string
	}{
		"status":    {script: "exit 7", want: sandboxes.Exit{Code: 7}},
		"signal":    {script: "kill -KILL $$", want: sandboxes.Exit{Code: 137, Signal: "SIGKILL"}},
		"streams":   {script: "echo out; echo err >&2", out: "out\n", errs: "err\n"},
		"input":     {script: "cat", in: "a\x00b\xff\n", out: "a\x00b\xff\n"},
		"variables": {script: `printf %s "$A"`, env: []string{"A=it's\n$HOME `id` ü"}, out: "it's\n$HOME `id` ü"},
		"daemon":    {script: "(setsid sleep 1000 &) ; exit 0"},
		"commit":    {script: "echo hello >f && git add f && git -c user.name=A -c user.email=a@example.invalid commit -qm one"},
	} {
		var out, errs bytes.Buffer
		exit, err := box.Exec(t.Context(), sandboxes.Command{
			Argv: []string{"sh", "-c", tt.script}, Env: tt.env, Stdin: strings.NewReader(tt.in), Stdout: &out, Stderr: &errs,
		})
		if err != nil || exit != tt.want || out.String() != tt.out || errs.String() != tt.errs {
			t.Errorf("%s: %+v, %v, output %q, errors %q", name, exit, err, &out, &errs)
		}
	}
	var start *sandboxes.StartError
	if _, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"no-such-program"}}); !errors.As(err, &start) {
		t.Errorf("a program that is missing: %v", err)
	}
	stop := make(chan struct{})
	close(stop)
	exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sleep", "1000"}, Interrupt: stop, Grace: 1})
	if err != nil || exit.Signal == "" {
		t.Errorf("interrupted: %+v, %v", exit, err)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(s.worktree, "f")); err != nil || string(text) != "hello\n" {
		t.Errorf("on the host f holds %q, %v", text, err)
	}
	var out bytes.Buffer
	ran, err := proc.Run(t.Context(), proc.Spec{
		Argv: []string{"git", "--git-dir", s.private, "log", "--all", "--format=%s"}, Env: os.Environ(), Stdout: &out, Stderr: &out,
	})
	if err != nil || ran.Code != 0 || out.String() != "one\n" {
		t.Errorf("the private repository has %q, %v", &out, err)
	}
}
