package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/sandboxes"
)

// What would end every run is refused before there is one.
func TestValidate(t *testing.T) {
	t.Parallel()
	c := config.Config{
		Sandboxes: sandboxes.NewNone(sandboxes.NoneConfig{}),
		Agent:     agents.Command{}, Options: agents.Options{Command: []string{"true"}},
		Prompt: loop.Prompt{Template: "{{issue}} {{feedback}} {{branch}}"},
	}
	if err := c.WithDefaults().Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*config.Config){
		"a gate or setup command is empty": func(c *config.Config) { c.Gate = []loop.Command{{Line: " "}} },
		"completion signal is empty":       func(c *config.Config) { c.Signals = []string{""} },
		"max iterations is -1":             func(c *config.Config) { c.MaxIterations = -1 },
		"timeout is -1s":                   func(c *config.Config) { c.Timers.Idle = -time.Second },
		"isue":                             func(c *config.Config) { c.Prompt.Template = "{{isue}}" },
		"no command":                       func(c *config.Config) { c.Options.Command = nil },
	} {
		changed := c
		change(&changed)
		err := changed.WithDefaults().Validate()
		if err == nil || strings.Count(err.Error(), want) != 1 {
			t.Errorf("%s: %v", want, err)
		}
	}
}
