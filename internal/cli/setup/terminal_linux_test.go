package setup

import (
	"io"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/clitest"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/scaffold"
)

// Init's proposals are wrapped between words.
func TestInitFitsTheTerminal(t *testing.T) {
	t.Parallel()
	tty, shown := clitest.Terminal(t, 40)
	a := compose.New(compose.Host{Stdout: tty, Stderr: io.Discard})
	printChecks(a, scaffold.Choices{Agent: "codex", Sandbox: "none", Gate: []string{"go vet ./... && go test ./... && staticcheck ./..."}})
	a.UI.Printf("end\n")
	got := clitest.Shown(t, shown, "end\n")
	if want := "  gate           go vet ./... && go test\n                 ./... && staticcheck\n                 ./...\nend\n"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
