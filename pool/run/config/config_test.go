package config_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
)

// Settings that would end every run are refused before the first.
func TestValidate(t *testing.T) {
	t.Parallel()
	c := config.Config{
		Sandboxes: sandboxes.NewNone(sandboxes.NoneConfig{}),
		Agent:     agents.Command{}, Options: agents.Options{Command: []string{"true"}},
		Prompt: prompt.Prompt{Template: "{{issue}} {{feedback}} {{branch}}"},
	}
	c.Canaries = []config.Canary{{Path: "bad_test.go", Content: []byte("package bad")}}
	if err := c.WithDefaults().Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*config.Config){
		"a gate or setup command is empty":   func(c *config.Config) { c.Gate = []loop.Command{{Line: " "}} },
		"completion signal is empty":         func(c *config.Config) { c.Signals = []string{""} },
		"max iterations is -1":               func(c *config.Config) { c.MaxIterations = -1 },
		"timeout is -1s":                     func(c *config.Config) { c.Timers.Idle = -time.Second },
		"timeout is -2s":                     func(c *config.Config) { c.Gate = []loop.Command{{Line: "true", Timeout: -2 * time.Second}} },
		"After: command `x`":                 func(c *config.Config) { c.After = []loop.Command{{Line: "x", Timeout: -1}} },
		"After: a gate":                      func(c *config.Config) { c.After = []loop.Command{{}} },
		"Before: command \"a\\x00b\"":        func(c *config.Config) { c.Before = []string{"true", "a\x00b"} },
		"RetestCommand: command":             func(c *config.Config) { c.RetestCommand = "test \x00 {files}" },
		`Canaries: "../x"`:                   func(c *config.Config) { c.Canaries = []config.Canary{{Path: "../x"}} },
		`Identity: Author "half"`:            func(c *config.Config) { c.Identity.Author.Name = "half" },
		`Mounts: "relative" must`:            func(c *config.Config) { c.Mounts = []sandboxes.Mount{{Host: "/etc", Inside: "relative"}} },
		`Mounts: "etc" must`:                 func(c *config.Config) { c.Mounts = []sandboxes.Mount{{Host: "etc", Inside: "/etc"}} },
		`Tracker: the name "a\x1b[31m"`:      func(c *config.Config) { c.Tracker = oddTracker{} },
		`Sandboxes: the name ""`:             func(c *config.Config) { c.Sandboxes = oddSandbox{c.Sandboxes} },
		`Fallback[0].Agent: the name "a\nb"`: func(c *config.Config) { c.Fallback = agents.Chain{{Agent: oddAgent{name: "a\nb"}, Options: c.Options}} },
		`Attempts[0].Agent: the name " "`:    func(c *config.Config) { c.Attempts = agents.Chain{{Agent: oddAgent{name: " "}, Options: c.Options}} },
		`Review.Agent: the name ""`:          func(c *config.Config) { c.Review.Agent, c.Review.Options = oddAgent{}, c.Options },
		"isue":                               func(c *config.Config) { c.Prompt.Template = "{{isue}}" },
		"no command":                         func(c *config.Config) { c.Options.Command = nil },
		"KeepRuns":                           func(c *config.Config) { c.KeepRuns = -5 },
		"Reconcile":                          func(c *config.Config) { c.Reconcile = -5 },
		"ProgressReport":                     func(c *config.Config) { c.ProgressReport = -5 },
		"BackoffMax":                         func(c *config.Config) { c.Retry.BackoffMax = -5 },
		"Budget ":                            func(c *config.Config) { c.Budget.Tokens = -1 },
		"Caps.Month":                         func(c *config.Config) { c.Caps.Month.CostUSD = math.NaN() },
		"Estimate ":                          func(c *config.Config) { c.Budget.CostUSD, c.Estimate.CostUSD = 1, math.Inf(1) },
		"Shares[codex]":                      func(c *config.Config) { c.Shares = ledger.Shares{{Agent: "codex"}: {CostUSD: -1}} },
		"Env: entry 2":                       func(c *config.Config) { c.Env = []string{"A=b", "B=secret\x00"} },
		"Env: entry 1":                       func(c *config.Config) { c.Env = []string{"A"} },
		`Copy: "/etc/passwd"`:                func(c *config.Config) { c.Copy = []string{"/etc/passwd"} },
		`SetupInputs: "../x"`:                func(c *config.Config) { c.SetupInputs = []string{"a", "../x"} },
		`Pool "a/b\nc"`:                      func(c *config.Config) { c.Pool = "a/b\nc" },
	} {
		changed := c
		change(&changed)
		err := changed.WithDefaults().Validate()
		if err == nil || strings.Count(err.Error(), want) != 1 {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Parts with names that break a report or a terminal.
type (
	oddAgent struct {
		agents.Command
		name string
	}
	oddSandbox struct{ sandboxes.Provider }
	oddTracker struct{ tracker.Tracker }
)

func (a oddAgent) Name() string { return a.name }

func (oddSandbox) Name() string { return "" }

func (oddTracker) Name() string { return "a\x1b[31m" }
