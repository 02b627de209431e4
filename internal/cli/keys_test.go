package cli

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
)

// The agent's key has no well-known shape, and agent and gate print it everywhere. Nothing that ralph prints or stores
// contains it.
func TestKeysAreNeitherPrintedNorStored(t *testing.T) {
	t.Parallel()
	const key = "a-key-of-no-shape-7391"
	keyed := func(h *compose.Host) { h.Env = append(h.Env, "ANTHROPIC_API_KEY="+key, "KEY_OF_NO_NAME="+key) }
	for name, script := range map[string]string{
		"fails":   "echo \"it is $KEY_OF_NO_NAME\"; echo \"error: bad key $KEY_OF_NO_NAME\" >&2; exit 3\n",
		"asks":    "echo \"<needs-info>is $KEY_OF_NO_NAME the key?</needs-info>\"\n",
		"stops":   "echo \"<no-change>$KEY_OF_NO_NAME</no-change>\"\n",
		"commits": "echo x > x; git add x; git -c user.name=a -c user.email=a@b commit -qm \"with $KEY_OF_NO_NAME\"; echo \"the key $KEY_OF_NO_NAME\"; echo '<promise>COMPLETE</promise>'\n",
		"splits": "K=$(printf %s \"$KEY_OF_NO_NAME\" | sed \"s/^...../&$(printf '\\342\\200\\213')/\"); echo x > x; git add x; " +
			"git -c user.name=\"$K\" -c user.email=a@b commit -qm \"with $K\"; echo \"the key $K\"; printf 'it is %s\\n' \"$K\" >&2; echo \"<out>$K</out> <needs-info>$K?</needs-info>\"\n",
		"outputs": "echo x > x; git add x; git -c user.name=a -c user.email=a@b commit -qm one; echo \"<out>$KEY_OF_NO_NAME</out> <promise>COMPLETE</promise>\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\nDo it.\n")
			m.commit(t)
			agent := filepath.Join(m.program(t, "agent", script), "agent")
			common := []string{
				"--sandbox=none", "--skip-permissions", "--agent=command", "--agent-command=" + agent, "--max-iterations=2",
				"--gate=echo \"gate: $KEY_OF_NO_NAME\"; false", "--setup=echo \"setup: $KEY_OF_NO_NAME\"",
			}
			var said bytes.Buffer
			do := func(args ...string) {
				got := m.run(t, keyed, args...)
				if strings.Contains(got.stdout+got.stderr, key) {
					t.Errorf("%s prints it: %s\n%s", args[0], got.stdout, got.stderr)
				}
				said.WriteString(got.stdout + got.stderr)
			}
			if name == "outputs" {
				common = append(common[:len(common)-2], "--max-iterations=1", "--output-tag=out")
				do(append([]string{"run", "--prompt=say <out>it</out>", "--json"}, common...)...)
				do(append([]string{"run", "--prompt=say <out>it</out>"}, common...)...)
			} else {
				do(append([]string{"run", "--prompt=hi", "--json", "--verbose", "--log-file=run.log"}, common...)...)
				do(append([]string{"run", "--prompt=hi"}, common...)...)
				do(append([]string{"work", "--verbose"}, common...)...)
				do("show", "one", "--json")
				do("show", "one")
				do("logs", "one")
				do("list", "--json")
				do("sandbox", "exec", "--sandbox=none", "--", "sh", "-c", "test -n $KEY_OF_NO_NAME")
				if !strings.Contains(said.String(), "one") {
					t.Errorf("nothing was shown: %s", &said)
				}
			}
			files := 0
			for _, dir := range []string{m.home, m.repo} {
				err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
					if d != nil && d.Name() == ".git" {
						return fs.SkipDir // the agent's commits may contain anything
					}
					if err != nil || !d.Type().IsRegular() {
						return err
					}
					files++
					text, err := os.ReadFile(path)
					if bytes.Contains(text, []byte(key)) {
						t.Errorf("%s has it", strings.TrimPrefix(path, m.root))
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
			if files < 4 {
				t.Errorf("%d files; it said %s", files, &said)
			}
		})
	}
}
