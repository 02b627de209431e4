package loop

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/sandboxes"
)

// What an agent prints about its service may come from a command that it runs. If ralph sees the agent's requests, only a refusal
// that it has seen makes the agent unavailable; otherwise the run has failed. The wait is short, unless the service has stated a
// longer one to ralph.
func TestUnseenRefusalIsDoubted(t *testing.T) {
	t.Parallel()
	const days = 6 * 24 * time.Hour
	for name, tt := range map[string]struct {
		watched, metered bool
		passed           MeteredRequests
		end              End
		wait             time.Duration
	}{
		"seen":         {true, true, MeteredRequests{Answered: true, Refused: true, LimitEnd: time.Now().Add(2 * days)}, EndUnavailable, days},
		"seen shorter": {true, true, MeteredRequests{Answered: true, Refused: true, LimitEnd: time.Now().Add(time.Minute)}, EndUnavailable, maxWait},
		"seen without": {true, true, MeteredRequests{Answered: true, Refused: true}, EndUnavailable, maxWait},
		"not seen":     {true, true, MeteredRequests{Answered: true}, EndAgent, 0},
		"no request":   {true, true, MeteredRequests{}, EndAgent, 0},
		"not watched":  {false, true, MeteredRequests{}, EndUnavailable, maxWait},
		"no meter":     {true, false, MeteredRequests{}, EndUnavailable, maxWait},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newFakeMeter()
			m.passed = tt.passed
			c := fakeConfig(fakeSandbox{agent: func(_ context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
				fmt.Fprintf(cmd.Stdout, "fail %s %d\n", agents.RateLimit, time.Now().Add(days).Unix())
				return sandboxes.Exit{Code: 1}, nil
			}}, &recorder{})
			c.Import, c.Watched = importCommits(0), func(agents.Agent) bool { return tt.watched }
			if tt.metered {
				c.Meter = m
			}
			r := Run(t.Context(), c)
			wantEnd(t, r, tt.end)
			if tt.end == EndAgent {
				if f := r.Failure; f.Class != agents.OtherFailure || !f.ResetAt.IsZero() || !strings.Contains(f.Message, "no refusal by the model service was seen") {
					t.Errorf("failure %+v", f)
				}
				return
			}
			it := r.Iterations[0]
			if wait := it.Failure.ResetAt.Sub(it.Ended); it.Failure.Class != agents.RateLimit || wait > tt.wait || wait < tt.wait-time.Minute {
				t.Errorf("%s, the wait is %s, want %s", it.Failure.Class, wait, tt.wait)
			}
		})
	}
}

// An agent takes the answer of ralph's proxy for that of a failing service. The failure says what the proxy knows, and what sets the
// service's address.
func TestUnreachableService(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		says    agents.Class
		passed  MeteredRequests
		class   agents.Class
		message string
	}{
		"not reached": {
			agents.Overload, MeteredRequests{Refused: true, Unreached: "127.0.0.1:1 cannot be reached: connection refused"}, agents.Unreachable,
			"the model service at 127.0.0.1:1 cannot be reached: connection refused; SERVICE_URL sets its address, http://127.0.0.1:1",
		},
		"refused": {agents.Unreachable, MeteredRequests{Refused: true}, agents.Overload, ""},
	} {
		m := newFakeMeter()
		m.passed = tt.passed
		c := fakeConfig(fakeSandbox{agent: func(_ context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
			fmt.Fprintf(cmd.Stdout, "fail %s 0\n", tt.says)
			return sandboxes.Exit{Code: 1}, nil
		}}, &recorder{})
		c.Import, c.Meter = importCommits(0), m
		c.Options.Address, c.Options.AddressFrom = "http://127.0.0.1:1", "SERVICE_URL"
		r := Run(t.Context(), c)
		wantEnd(t, r, EndUnavailable)
		if f := r.Failure; f.Class != tt.class || f.Address != "http://127.0.0.1:1" || tt.message != "" && f.Message != tt.message {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
