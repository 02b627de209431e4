package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/sandboxes"
)

// probed counts the checks of a provider.
type probed struct {
	sandboxes.Provider
	isolation sandboxes.Isolation
	checks    int
	err       error
}

func (c *probed) Name() string { return "checked" }

func (c *probed) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{Isolation: c.isolation}
}

func (c *probed) Check(context.Context) error {
	c.checks++
	return c.err
}

// A sandbox without an external program is checked once, until the check or the sandbox of a run fails.
func TestSandboxIsCheckedOnce(t *testing.T) {
	t.Parallel()
	fails := errors.New("fails")
	for name, c := range map[string]struct {
		isolation sandboxes.Isolation
		between   func(*compose.Parts, *probed)
		first     error
		want      int
	}{
		"once":           {sandboxes.Namespaces, nil, nil, 1},
		"fails":          {sandboxes.Namespaces, nil, fails, 2},
		"has an engine":  {sandboxes.Container, nil, nil, 2},
		"a run ended":    {sandboxes.Namespaces, func(p *compose.Parts, c *probed) { checkAgain(p, c, []journal.Record{{}}) }, nil, 1},
		"a run found no": {sandboxes.Namespaces, func(p *compose.Parts, c *probed) { checkAgain(p, c, []journal.Record{{}, noSandboxRun()}) }, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, provider := &compose.Parts{State: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, &probed{isolation: c.isolation, err: c.first}
			if err := checkSandbox(t.Context(), p, provider); !errors.Is(err, c.first) {
				t.Errorf("first: %v", err)
			}
			if c.between != nil {
				c.between(p, provider)
			}
			provider.err = nil
			if err := checkSandbox(t.Context(), p, provider); err != nil || provider.checks != c.want {
				t.Errorf("%d checks, want %d: %v", provider.checks, c.want, err)
			}
		})
	}
}

func noSandboxRun() (r journal.Record) {
	r.Facts.Open = &journal.Fault{Kind: journal.FaultSandbox}
	return r
}

// A program in the checkout is not in a container: the worktree has another file, which agents may change.
func TestAgentInTheCheckoutIsNotInContainers(t *testing.T) {
	t.Parallel()
	a := &compose.App{Host: compose.Host{Dir: "/checkout/below"}}
	p := &compose.Parts{Top: "/checkout"}
	for isolation, want := range map[sandboxes.Isolation]string{
		sandboxes.Container:   "agent command is unavailable: sandbox checked does not show /checkout/agent; mount it, or start the copy in the worktree with sh -c 'exec ./PATH'",
		sandboxes.NoIsolation: "agent command is unavailable: /checkout/agent: not found; install it where the agent runs, or choose another with --agent or --agent-command",
	} {
		c := run.Config{Sandboxes: &probed{isolation: isolation}}
		err := noProgram(a, p, c, agents.Link{Agent: agents.Command{}, Options: agents.Options{Command: []string{"/checkout/agent"}}})
		if err == nil || err.Error() != want {
			t.Errorf("%v: %v", isolation, err)
		}
	}
}

// TestEnoughFiles checks that fewer workers are only proposed if that helps.
func TestEnoughFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		parallel int
		limit    uint64
		want     string
	}{
		{4, 192, ""},
		{1, 96, ""},
		{4, 191, "--parallel 4 needs 193 open files, but 191 are allowed; use --parallel 3, or allow more with: ulimit -Hn 193"},
		{4, 64, "--parallel 4 needs 193 open files, but 64 are allowed; allow more with: ulimit -Hn 193"},
		{1, 20, "--parallel 1 needs 97 open files, but 20 are allowed; allow more with: ulimit -Hn 97"},
	} {
		got := ""
		if err := enoughFiles(c.parallel, c.limit); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%d with %d: %q, want %q", c.parallel, c.limit, got, c.want)
		}
	}
}

// A program in the worktree is not looked for: the worktree of a preflight check is empty.
func TestProgramIsLookedForInTheSandbox(t *testing.T) {
	t.Parallel()
	box, err := sandboxes.NewNone(sandboxes.NoneConfig{Env: []string{"PATH=/usr/bin:/bin"}}).Open(t.Context(), sandboxes.Spec{Run: "r", Worktree: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = box.Close(t.Context()) }()
	for program, want := range map[string]string{"sh": "true", "/bin/sh": "true", "no-such-agent": "false", "/opt/no-such-agent": "false", "./agent": "nil", "": "nil"} {
		got := "nil"
		if has := hasProgram(t.Context(), box, program); has != nil {
			got = fmt.Sprint(*has)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", program, got, want)
		}
	}
}
