package sandbox

import (
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/sandboxes"
)

func TestNetworkWord(t *testing.T) {
	t.Parallel()
	a := &compose.App{}
	got := map[string]string{}
	registry := a.SandboxRegistry(&compose.Parts{})
	for _, name := range registry.Names() {
		p, err := registry.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		got[name] = networkWord(p.Capabilities())
	}
	if got["sbx"] != "own policy" || got["docker"] != "allow-list" || got["none"] != "open" {
		t.Errorf("got %v", got)
	}
	if w := networkWord(sandboxes.Capabilities{}); w != "open" {
		t.Errorf("what promises nothing is %q", w)
	}
}
