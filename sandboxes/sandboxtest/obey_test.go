package sandboxtest

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ralph-pool/ralph/sandboxes"
)

// deaf is a provider and its sandbox. One of their calls waits for goOn and ignores its context.
type deaf struct {
	sandboxes.Provider
	call string
	goOn chan struct{}
}

func (d deaf) wait(ctx context.Context, call string) error {
	if call == d.call {
		<-d.goOn
		return nil
	}
	return context.Cause(ctx)
}

func (d deaf) Check(ctx context.Context) error { return d.wait(ctx, "Check") }

func (d deaf) Open(ctx context.Context, _ sandboxes.Spec) (sandboxes.Sandbox, error) {
	return d, d.wait(ctx, "Open")
}

func (deaf) Workdir() string { return "/" }

func (d deaf) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if d.call == "Exec without output" {
		<-d.goOn
		return sandboxes.Exit{}, nil
	}
	_, _ = cmd.Stdout.Write([]byte("ready"))
	return sandboxes.Exit{}, d.wait(ctx, "Exec")
}

func (d deaf) Close(ctx context.Context) error { return d.wait(ctx, "Close") }

// checkContexts names the call of a provider that ignores its context, in one line.
func TestObeys(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]string{
		"":                    "",
		"Check":               "Check ignores its context: it has not returned 1m0s after that ended",
		"Open":                "Open ignores its context: it has not returned 1m0s after that ended",
		"Exec":                "Exec ignores its context: it has not returned 1m0s after that ended",
		"Exec without output": "Exec ignores its context: it has not returned 1m0s after that ended",
		"Close":               "Close ignores its context: it has not returned 1m0s after that ended",
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := deaf{call: call, goOn: make(chan struct{})}
				defer close(d.goOn)
				got := ""
				if err := checkContexts(t.Context(), d, sandboxes.Spec{}); err != nil {
					got = err.Error()
				}
				if got != want || strings.Contains(got, "\n") {
					t.Errorf("%q, want %q", got, want)
				}
			})
		})
	}
}
