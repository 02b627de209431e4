package cli

import (
	"strings"
	"testing"
)

// The list of sandboxes has a hint for each one that cannot be used.
func TestSandboxCheckNamesFixes(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	got := m.run(t, nil, "sandbox", "check", "--sandbox=none", "--agent-command=true")
	if want := "no image is named; build the image with: ralph image build --engine docker"; !strings.Contains(got.stdout, want) {
		t.Errorf("got %+v, want %q", got, want)
	}
}
