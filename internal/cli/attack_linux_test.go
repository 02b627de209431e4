package cli

import (
	"fmt"
	"strings"
	"testing"
)

func TestAttacksAreStopped(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	got := m.run(t, nil, "sandbox", "check", "--sandbox=native", "--agent-command=true")
	_, attacks, _ := strings.Cut(got.stdout, "Attacks from inside native:\n")
	lines := strings.Split(strings.TrimSpace(attacks), "\n")
	sum := fmt.Sprintf("native stopped %d of %[1]d attacks.", len(lines)-1)
	if got.status != 0 || len(lines) < 25 || lines[len(lines)-1] != sum {
		t.Errorf("status %d, %s%s", got.status, attacks, got.stderr)
	}
	for _, line := range lines[:len(lines)-1] {
		if !strings.HasPrefix(strings.TrimSpace(line), "stopped  ") {
			t.Errorf("unexpected: %s", line)
		}
	}
	if got := m.run(t, nil, "sandbox", "check", "--sandbox=none", "--agent-command=true"); got.status != 1 || !strings.Contains(got.stderr, "none isolates nothing") {
		t.Errorf("none: %+v", got)
	}
}
