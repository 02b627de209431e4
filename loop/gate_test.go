package loop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
)

func TestGateStopsAtTheFirstFailure(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		lines []string
		codes []int
	}{
		{"empty", nil, nil},
		{"all pass", []string{"true", "echo a | grep a"}, []int{0, 0}},
		{"second fails", []string{"true", "exit 3", "touch never"}, []int{0, 3}},
		{"death by signal is a failure", []string{"kill -KILL $$", "touch never"}, []int{137}},
		{"no such program", []string{"no-such-program-here"}, []int{127}},
		{"nothing on stdin", []string{"cat"}, []int{0}},
		{"a child left behind does not hold it", []string{"sleep 1000 & exit 0"}, []int{0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := hostConfig(t, &recorder{})
			for _, l := range tt.lines {
				c.Gate = append(c.Gate, Command{Line: l})
			}
			checks, err := RunCommands(t.Context(), c, EventGate, c.Gate)
			if err != nil || len(checks) != len(tt.codes) {
				t.Fatalf("%+v, %v", checks, err)
			}
			for i, want := range tt.codes {
				if checks[i].ExitCode != want || checks[i].Passed() != (want == 0) || checks[i].Command != tt.lines[i] {
					t.Errorf("check %+v, want status %d", checks[i], want)
				}
			}
			if _, err := os.Stat(filepath.Join(workdir(c), "never")); err == nil {
				t.Error("a command ran after a failure")
			}
		})
	}
}

func TestGateKeepsABoundedTailAndTheWholeLog(t *testing.T) {
	t.Parallel()
	d := &recorder{}
	c := hostConfig(t, d)
	c.Gate = []Command{{Line: "yes €uro | head -c 100000; echo last; exit 1"}}
	checks, err := RunCommands(t.Context(), c, EventGate, c.Gate)
	if err != nil {
		t.Fatal(err)
	}
	tail := checks[0].Tail
	if len(tail) > tailKept || !strings.HasSuffix(tail, "last\n") || strings.ContainsRune(tail, '\uFFFD') {
		t.Errorf("tail of %d bytes: %q…", len(tail), tail[:20])
	}
	if got := len(d.file("gate-0-1.log")); got != 100005 {
		t.Errorf("log of %d bytes", got)
	}
}

func TestGateTimeoutPerCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := fakeConfig(fakeSandbox{shell: func(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
			if cmd.Argv[2] == "slow" {
				return sandboxes.Exit{}, pause(ctx, 14*time.Minute)
			}
			<-ctx.Done()
			return sandboxes.Exit{}, context.Cause(ctx)
		}}, &recorder{})
		for _, own := range []time.Duration{0, 5 * time.Second} {
			c.Gate = []Command{{Line: "slow"}, {Line: "hangs", Timeout: own, Limit: "gate-timeout"}}
			start := time.Now()
			checks, err := RunCommands(t.Context(), c, EventGate, c.Gate)
			if err != nil || len(checks) != 2 || !checks[0].Passed() || !checks[1].TimedOut || checks[1].Passed() || checks[1].ExitCode == 0 {
				t.Errorf("%+v, %v", checks, err)
			}
			want, says := 14*time.Minute+15*time.Minute, "took longer than gate-timeout (15m) and was killed"
			if own > 0 {
				want, says = 14*time.Minute+own, "took longer than gate-timeout (5s) and was killed"
			}
			if got := checks[1].Failure(); got != says {
				t.Errorf("it %s", got)
			}
			if got := time.Since(start); got != want {
				t.Errorf("took %s, want %s", got, want)
			}
		}
	})
}

func TestGateThatCannotRunIsAnErrorNotAFailure(t *testing.T) {
	t.Parallel()
	c := fakeConfig(fakeSandbox{shell: func(context.Context, sandboxes.Command) (sandboxes.Exit, error) {
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: "sh", Err: os.ErrNotExist}
	}}, &recorder{})
	for _, kind := range []EventKind{EventGate, EventSetup, EventAfter} {
		checks, err := RunCommands(t.Context(), c, kind, []Command{{Line: "make it"}})
		if want := string(kind) + " `make it`: "; len(checks) != 0 || !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, %v", checks, err)
		}
	}
}

func TestSignalWithStatusZeroNeverPasses(t *testing.T) {
	t.Parallel()
	c := fakeConfig(fakeSandbox{shell: func(context.Context, sandboxes.Command) (sandboxes.Exit, error) {
		return sandboxes.Exit{Code: 0, Signal: "SIGKILL"}, nil
	}}, &recorder{})
	c.Gate = []Command{{Line: "make test"}}
	if checks, err := RunCommands(t.Context(), c, EventGate, c.Gate); err != nil || checks[0].Passed() {
		t.Errorf("%+v, %v", checks, err)
	}
}
