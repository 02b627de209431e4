package session_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/session"
)

func TestSession(t *testing.T) {
	each(t, func(t *testing.T, p sandboxes.Provider) {
		dir := filepath.Join(t.TempDir(), "new", "workspace")
		s := prepare(t, session.Config{
			Provider: p, Spec: sandboxes.Spec{Worktree: dir}, Outputs: []string{"out/*.txt", "never", "**/report.json"},
			Metadata: map[string]string{"k": "v"},
		})
		if err := s.Workspace.PutFile("in/input", "hello"); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		r, err := s.Run(t.Context(), sandboxes.Command{
			Argv: []string{"sh", "-c", "cat in/input; mkdir out; echo 1 >out/a.txt; echo {} >out/report.json; echo bad >&2; exit 3"}, Stdout: &out, Stderr: &out,
		})
		if err != nil || r.Exit.Code != 3 || string(r.Stdout) != "hello" || string(r.Stderr) != "bad\n" || out.Len() != len("hellobad\n") {
			t.Errorf("%+v, %v, %q", r, err, &out)
		}
		a := collect(t, s)
		if a.Run != s.Name() || !strings.HasPrefix(a.Run, "session-") || a.Sandbox != p.Name() || a.Metadata["k"] != "v" {
			t.Errorf("%+v", a)
		}
		if len(a.Logs) != 1 || a.Logs[0].Exit.Code != 3 || !slices.Equal(a.Missing, []string{"never"}) {
			t.Errorf("logs %+v, missing %q", a.Logs, a.Missing)
		}
		if len(a.Files) != 2 || a.Files[0].Path != "out/a.txt" || string(a.Files[0].Content) != "1\n" || a.Files[1].Path != "out/report.json" {
			t.Errorf("files %+v", a.Files)
		}
		for range 2 {
			if err := s.Cleanup(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if _, err := s.Run(t.Context(), sandboxes.Command{Argv: []string{"true"}}); !errors.Is(err, sandboxes.ErrClosed) {
			t.Errorf("run after cleanup: %v", err)
		}
		if _, err := s.Workspace.GetBytes("in/input"); !errors.Is(err, os.ErrClosed) {
			t.Errorf("read after cleanup: %v", err)
		}
		if err := s.Workspace.PutFile("new/file", ""); !errors.Is(err, os.ErrClosed) {
			t.Errorf("write after cleanup: %v", err)
		}
		if _, err := os.Stat(filepath.Join(dir, "out/a.txt")); err != nil {
			t.Errorf("the workspace is gone: %v", err)
		}
	})
}

func TestRunKeepsTheEndOfItsOutput(t *testing.T) {
	t.Parallel()
	s := prepare(t, session.Config{Provider: providers()[0], Spec: spec(t.TempDir()), MaxOutput: 10})
	r := sh(t, s, "printf 0123456789abcdef; printf 0123456789abcde >&2")
	if string(r.Stdout) != "6789abcdef" || string(r.Stderr) != "56789abcde" || r.Dropped != 11 {
		t.Errorf("%q, %q, %d dropped", r.Stdout, r.Stderr, r.Dropped)
	}
	for range 70 {
		sh(t, s, ":")
	}
	if n := len(collect(t, s).Logs); n != 64 {
		t.Errorf("%d logs", n)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	each(t, func(t *testing.T, p sandboxes.Provider) {
		s := prepare(t, session.Config{Provider: p, Spec: spec(t.TempDir())})
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("stop")
		r, err := s.Run(ctx, sandboxes.Command{Argv: []string{"sh", "-c", "echo ready; exec sleep 1000"}, Stdout: writerFunc(func() { cancel(stop) })})
		if !errors.Is(err, stop) || string(r.Stdout) != "ready\n" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// writerFunc calls a function on each Write.
type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

func TestOutputsAreBounded(t *testing.T) {
	t.Parallel()
	s := prepare(t, session.Config{
		Provider: providers()[0], Spec: spec(t.TempDir()), Outputs: []string{"*"}, MaxFile: 4, MaxFiles: 6,
	})
	sh(t, s, "printf 12345 >a; printf 1234 >b; printf 123 >c; printf 12 >d; mkfifo e; ln -s /etc/passwd f; ln -s d g")
	var got []string
	for _, f := range collect(t, s).Files {
		got = append(got, f.Path+"="+string(f.Content))
		if (f.Skipped != "") != (len(f.Content) == 0) {
			t.Errorf("%+v", f)
		}
	}
	if want := []string{"a=", "b=1234", "c=", "d=12", "g="}; !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
}

func TestPrepareRefuses(t *testing.T) {
	t.Parallel()
	none := providers()[0]
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	tests := []struct {
		name   string
		config session.Config
		want   string
	}{
		{"no provider", session.Config{}, "prepare the session: no provider is named"},
		{"relative", session.Config{Provider: none, Spec: spec("here")}, `prepare the session: workspace "here" is not an absolute path`},
		{"file", session.Config{Provider: none, Spec: spec(file)}, "prepare the session: make the workspace: mkdir " + file + ": not a directory"},
		{"pattern", session.Config{Provider: none, Spec: spec(t.TempDir()), Outputs: []string{"a/["}},
			`prepare the session: pattern "a/[": syntax error in pattern`},
		{"limit", session.Config{Provider: none, Spec: spec(t.TempDir()), MaxDiff: -1}, "prepare the session: a limit is negative"},
		{"isolation", session.Config{Provider: none, Spec: sandboxes.Spec{Worktree: t.TempDir(), RequireIsolation: true}},
			"prepare the session: sandbox none does not isolate: sandbox cannot do this"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := session.Prepare(t.Context(), tt.config); err == nil || err.Error() != tt.want {
				t.Errorf("error is %v\nwant %s", err, tt.want)
			}
		})
	}
}

// Commands work on the configured branch, which is created if missing.
func TestBranch(t *testing.T) {
	each(t, func(t *testing.T, p sandboxes.Provider) {
		dir := repository(t, map[string]string{"f": "1\n"})
		git(t, dir, "branch", "there")
		git(t, dir, "commit", "--quiet", "--allow-empty", "-m", "second")
		for branch, want := range map[string]string{"": "main", "there": "there", "made/new": "made/new"} {
			s := prepare(t, session.Config{Provider: p, Spec: spec(dir), Branch: branch})
			if got := string(sh(t, s, "git branch --show-current").Stdout); got != want+"\n" {
				t.Errorf("branch %q works on %q", branch, got)
			}
			sh(t, s, "git switch -q main")
			if err := s.Cleanup(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for branch, want := range map[string]string{"--force": "is not the name of a branch", "a..b": `switch to branch "a..b": fatal: `} {
			if _, err := session.Prepare(t.Context(), session.Config{Provider: p, Spec: spec(dir), Branch: branch}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("branch %q: %v", branch, err)
			}
		}
	})
}

// The error has the last 50 lines of standard error or, if that is empty, of standard output.
func TestCommandError(t *testing.T) {
	t.Parallel()
	s := prepare(t, session.Config{Provider: providers()[0], Spec: spec(t.TempDir())})
	lines := func(from, to int) string {
		var all []string
		for n := from; n <= to; n++ {
			all = append(all, strconv.Itoa(n))
		}
		return strings.Join(all, "\n")
	}
	for script, want := range map[string]string{
		"exit 0":                              "",
		"exit 3":                              "sh exited with status 3",
		"seq 60 >&2; echo out; exit 3":        "sh exited with status 3:\n" + lines(11, 60),
		"seq 50 >&2; exit 3":                  "sh exited with status 3:\n" + lines(1, 50),
		"echo; echo ' ' >&2; seq 60; exit 1":  "sh exited with status 1:\n" + lines(11, 60),
		"printf 'a\\377b' >&2; exit 1":        "sh exited with status 1:\na\uFFFDb",
		"echo dying >&2; kill -KILL $$":       "sh was ended by SIGKILL:\ndying",
		"seq 100000 >&2; echo last; exit 127": "sh exited with status 127:\n" + lines(99951, 100000),
	} {
		r, err := s.Run(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", script}})
		if err != nil {
			t.Fatal(err)
		}
		err = r.Err()
		var failure *session.CommandError
		if want == "" && err != nil || want != "" && (!errors.As(err, &failure) || err.Error() != want || failure.Exit != r.Exit) {
			t.Errorf("%s: %v, want %s", script, err, want)
		}
	}
}

// Record gets each command and its result, and its errors become those of Run.
func TestRecord(t *testing.T) {
	t.Parallel()
	refused, full := errors.New("refused"), errors.New("disk is full")
	var log bytes.Buffer
	s := prepare(t, session.Config{
		Provider: providers()[0], Spec: spec(t.TempDir()), NoDiff: true,
		Record: func(cmd *sandboxes.Command) (func(session.Result, error) error, error) {
			if cmd.Argv[0] == "false" {
				return nil, refused
			}
			*cmd = sandboxes.Tee(*cmd, &log, &log)
			return func(r session.Result, err error) error { return errors.Join(err, full) }, nil
		},
	})
	if r, err := s.Run(t.Context(), sandboxes.Command{Argv: []string{"echo", "hi"}}); !errors.Is(err, full) || string(r.Stdout) != "hi\n" || log.String() != "hi\n" {
		t.Errorf("%+v, %v, %q", r, err, &log)
	}
	if _, err := s.Run(t.Context(), sandboxes.Command{Argv: []string{"false"}}); !errors.Is(err, refused) {
		t.Errorf("error is %v", err)
	}
	if a := collect(t, s); len(a.Logs) != 1 || a.Diff.Missing != "the session was asked for no diff" {
		t.Errorf("%+v", a)
	}
}
