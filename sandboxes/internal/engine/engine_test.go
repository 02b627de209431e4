package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/internal/engine"
)

func TestCall(t *testing.T) {
	t.Parallel()
	p := engine.Program{Name: "tool", Command: []string{"sh", "-c"}, Env: []string{"PATH=/usr/bin:/bin"}, Missing: "build it"}
	if out, err := p.Call(t.Context(), "echo hello"); out != "hello\n" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	for script, want := range map[string]string{
		"echo first >&2; echo cause >&2; exit 3": "cause",
		"exit 3":                                 "exit status 3",
		"printf 'cause\n\nRun '\"'\"'x --help'\"'\"' for more information\n' >&2; exit 125": "cause",
	} {
		_, err := p.Call(t.Context(), script)
		if call, ok := errors.AsType[*engine.CallError](err); !ok || call.Message != want && err.Error() != "tool "+script+": "+want {
			t.Errorf("%s: %v", script, err)
		}
	}
	for _, script := range []string{"exec yes", "head -c 17000000 /dev/zero"} {
		if out, err := p.Call(t.Context(), script); err == nil || out != "" || !strings.Contains(err.Error(), "has printed more than") {
			t.Errorf("%s: %d bytes, %v", script, len(out), err)
		}
	}
	if out, err := p.Call(t.Context(), "head -c 16777216 /dev/zero"); len(out) != 16<<20 || err != nil {
		t.Errorf("at the limit: %d bytes, %v", len(out), err)
	}
	p.Command = []string{"no-such-program"}
	if _, err := p.Call(t.Context(), "x"); err == nil || !strings.HasPrefix(err.Error(), "tool is not installed: build it: ") {
		t.Errorf("error is %v", err)
	}
}

// Steer forwards every reason to end a command in order, and gives up a client that does not end.
func TestSteer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		interrupt, cancel, report bool
		want                      []string
	}{
		"interrupted": {interrupt: true, want: []string{"terminate", "kill", "give up"}},
		"cancelled":   {cancel: true, want: []string{"kill", "give up"}},
		"reported":    {report: true, want: []string{"dismiss", "give up"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				ended, reported, interrupt := make(chan error, 1), make(chan struct{}), make(chan struct{})
				var got []string
				note := func(what string) func() { return func() { got = append(got, what) } }
				client := engine.Client{
					Ended: ended, Reported: reported, Terminate: note("terminate"), Kill: note("kill"), Dismiss: note("dismiss"),
					GiveUp: func() { note("give up")(); ended <- errors.New("stopped") },
				}
				switch {
				case tt.interrupt:
					close(interrupt)
				case tt.cancel:
					cancel(context.Canceled)
				case tt.report:
					close(reported)
				}
				if err := client.Steer(ctx, sandboxes.Command{Interrupt: interrupt, Grace: time.Second}); err == nil || !slices.Equal(got, tt.want) {
					t.Errorf("%q, %v; want %q", got, err, tt.want)
				}
				cancel(context.Canceled)
			})
		})
	}
}
