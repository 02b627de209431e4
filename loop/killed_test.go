package loop

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
)

// A command that kills its sandbox counts as the agent's fault, unless it is a setup command.
func TestKilledSandbox(t *testing.T) {
	t.Parallel()
	kills := func(context.Context, sandboxes.Command) (sandboxes.Exit, error) {
		return sandboxes.Exit{}, fmt.Errorf("run it: %w", sandboxes.ErrKilledInside)
	}
	for name, c := range map[string]struct {
		stage fakeSandbox
		setup []Command
		want  End
	}{
		"agent": {fakeSandbox{agent: kills}, nil, EndKilled},
		"gate":  {fakeSandbox{agent: printLines(false, sayDone), shell: kills}, nil, EndKilled},
		"setup": {fakeSandbox{shell: kills}, []Command{{Line: "npm ci"}}, EndSandbox},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := fakeConfig(c.stage, &recorder{})
			config.Gate, config.Setup = []Command{{Line: "make test"}}, c.setup
			r := Run(t.Context(), config)
			if wantEnd(t, r, c.want); !errors.Is(r.Err, sandboxes.ErrKilledInside) {
				t.Errorf("error %v", r.Err)
			}
		})
	}
}
