package look

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/internal/cli/clitest"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/pool/journal"
)

// On a terminal the lines of a log, and of a check's output, break between words, and further lines begin below the text. Words, such
// as addresses, stay whole. Wide characters take two columns.
func TestLogFitsTheTerminal(t *testing.T) {
	t.Parallel()
	tty, shown := clitest.Terminal(t, 60)
	a := compose.New(compose.Host{Stdout: tty, Stderr: io.Discard, Env: []string{"NO_COLOR=1"}})
	dir := t.TempDir()
	text := "ok  \tone\n    an indented line of a check that is too long for the terminal\n"
	if err := os.WriteFile(filepath.Join(dir, "gate.log"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := &output{ui: a.UI, dir: dir}
	for _, e := range []journal.Event{
		{Kind: journal.EventAgent, Text: "I read the documentation of the configuration first.\nSee https://example.com/" + strings.Repeat("a", 34) + " there."},
		{Kind: journal.EventAgent, Text: "登录页面忘记了用户名，所以我在表单里保留它。然后测试通过了。"},
		{Kind: journal.EventGate, Text: "go test", Log: "gate.log"},
	} {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := logLine(a, line, out); err != nil {
			t.Fatal(err)
		}
	}
	out.more()
	a.UI.Printf("end\n")
	got := clitest.Shown(t, shown, "end\n")
	at := got[:8]
	below := strings.Repeat(" ", 20)
	want := at + "  agent       I read the documentation of the\n" + below + "configuration first.\n" + below + "See\n" +
		"https://example.com/" + strings.Repeat("a", 34) + "\n" + below + "there.\n" +
		at + "  agent       登录页面忘记了用户名，所以我在表单里保\n" + below + "留它。然后测试通过了。\n" +
		at + "  gate        go test\n" + below + "ok  \tone\n" + below + "    an indented line of a check that is\n" +
		below + "too long for the terminal\nend\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
