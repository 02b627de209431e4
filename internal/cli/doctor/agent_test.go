package doctor

import (
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/tracker"
)

// An agent's program on this host does not prove that an image has it.
func TestAgentInTheSandbox(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		has    *bool
		setup  []string
		want   tracker.Severity
		detail string
	}{
		{nil, nil, tracker.OK, "command: /opt/bot is not on this host; it must be in the sandbox"},
		{new(true), nil, tracker.OK, "command: /opt/bot is in the sandbox"},
		{new(false), nil, tracker.Fail, "command: /opt/bot is not in the sandbox"},
		{new(false), []string{"make bot"}, tracker.Warn, "command: /opt/bot is not in the sandbox, unless setup or before installs it"},
	} {
		d := &doctor{app: &compose.App{}, inside: "/opt/bot"}
		d.inSandbox(&compose.Parts{Config: config.Config{Agent: "command", Setup: c.setup}}, c.has)
		if len(d.findings) != 1 || d.findings[0].Severity != c.want || d.findings[0].Detail != c.detail {
			t.Errorf("%+v", d.findings)
		}
	}
}
