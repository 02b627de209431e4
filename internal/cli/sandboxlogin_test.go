package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
)

// Sbx gets the secret on standard input, never on its command line.
func TestSandboxLogin(t *testing.T) {
	t.Parallel()
	const help = "give it one with: sbx secret set "
	for name, tt := range map[string]struct {
		args   []string
		held   string // the service whose secret sbx holds
		stdin  string
		want   string // the last call of sbx, and its input
		stderr string // a part of it; then the command fails
	}{
		"key of the agent":  {args: nil, want: "secret set anthropic: the-key"},
		"another agent":     {args: []string{"--agent", "codex"}, stderr: "sbx has no secret for openai: " + help + "openai"},
		"login":             {args: []string{"--oauth", "openai"}, want: "secret set openai --oauth: "},
		"standard input":    {args: []string{"--stdin", "github"}, stdin: "ghp_1\n", want: "secret set github: ghp_1"},
		"it is there":       {args: []string{"--stdin"}, held: "anthropic", stdin: "new\n", want: "secret ls --json --service anthropic: "},
		"replaced":          {args: []string{"--stdin", "--refresh"}, held: "anthropic", stdin: "new\n", want: "secret set anthropic: new"},
		"nothing there":     {args: []string{"--stdin"}, stderr: "no secret on standard input; pipe it in, or remove --stdin"},
		"two lines":         {args: []string{"--stdin"}, stdin: "a\nb\n", stderr: "it has more than one line"},
		"both":              {args: []string{"--stdin", "--oauth"}, stderr: "oauth stdin"},
		"no service":        {args: []string{"--agent", "command", "--agent-command", "x"}, stderr: `agent "command" has no service that sbx knows; name one, such as: ralph sandbox login openai`},
		"two services":      {args: []string{"a", "b"}, stderr: "b"},
		"not a service":     {args: []string{"--", "--global"}, stderr: `"--global" is not a service of sbx`},
		"sbx does not want": {args: []string{"--oauth", "refused"}, stderr: "no such login"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.write(t, ".ralph/config.yaml", "agent: claude-code\n")
			bin, calls := filepath.Join(m.root, "bin"), filepath.Join(m.root, "calls")
			if err := os.Mkdir(bin, 0o755); err != nil {
				t.Fatal(err)
			}
			script := `#!/bin/sh
read=
case "$*" in
"secret ls"*) echo '{"secrets":[{"scope":"global","name":"` + tt.held + `"}]}' ;;
*refused*) echo ERROR: no such login >&2; exit 1 ;;
*--oauth*) echo open https://login.example >&2 ;;
*) read=$(cat) ;;
esac
echo "$*: $read" >>"` + calls + `"
`
			if err := os.WriteFile(filepath.Join(bin, "sbx"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			got := m.run(t, func(h *compose.Host) {
				h.Stdin = strings.NewReader(tt.stdin)
				h.Env = []string{"HOME=" + m.home, "PATH=" + bin + ":" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=the-key"}
			}, append([]string{"sandbox", "login"}, tt.args...)...)
			if tt.stderr != "" {
				if got.status == 0 || !strings.Contains(got.stderr, tt.stderr) || strings.Count(got.stderr, "Error") > 1 {
					t.Errorf("got %+v, want %q", got, tt.stderr)
				}
				return
			}
			text, err := os.ReadFile(calls)
			lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
			if last := lines[len(lines)-1]; err != nil || last != tt.want {
				t.Errorf("the last call is %q, %v, want %q", last, err, tt.want)
			}
			if got.status != 0 || !strings.HasPrefix(got.stdout, "sbx has the secret of ") {
				t.Errorf("got %+v", got)
			}
			if name == "login" && !strings.Contains(got.stderr, "open https://login.example") {
				t.Errorf("what the login says is not passed on: %+v", got)
			}
		})
	}
}
