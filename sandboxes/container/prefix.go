package container

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/inside"
)

// envFile holds the commands' environment for CommandPrefix, in the state folder.
const envFile = "env"

// maxEnvLine is how much of one line of an environment file the engines' programs read.
const maxEnvLine = 60 << 10

// CommandPrefix is the beginning of a command line that runs a command in the container by the engine's program: in the same
// folder, with the same environment and as the same user as Exec. The caller's own environment has to lead the program to the
// same engine. The environment is in a file, because everybody can read a command line; Close removes it.
func (b *box) CommandPrefix() ([]string, error) {
	if b.commands.Closed() {
		return nil, sandboxes.ErrClosed
	}
	var text strings.Builder
	for _, entry := range b.command(sandboxes.Command{}).Env {
		if err := checkEnvLine(string(entry)); err != nil {
			return nil, err
		}
		text.Write(entry)
		text.WriteByte('\n')
	}
	path := filepath.Join(b.state, envFile)
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return nil, fmt.Errorf("write the sandbox's environment: %w", err)
	}
	argv := b.provider.program().Argv("exec", "--interactive", "--workdir", b.workdir, "--env-file", path, b.name)
	if b.provider.config.unfiltered() {
		return argv, nil
	}
	return append(argv, helper(inside.Enter)...), nil
}

// checkEnvLine refuses an entry that would be read from a line as another one.
func checkEnvLine(entry string) error {
	name, _, _ := strings.Cut(entry, "=")
	switch {
	case strings.ContainsAny(entry, "\r\n\x00"), !utf8.ValidString(entry), len(entry) > maxEnvLine,
		strings.HasPrefix(name, "#"), strings.ContainsAny(name, " \t*"):
		return fmt.Errorf("the environment's %q does not fit on a line of a file: %w; use Exec", name, sandboxes.ErrUnsupported)
	}
	return nil
}
