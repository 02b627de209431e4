package container

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/inside"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/syntax"
)

// envFile is the file in the state folder with the commands' environment for CommandPrefix.
const envFile = "env"

// CommandPrefix returns the beginning of a command line that runs a command in the container with the engine's program, in
// the same folder, with the same environment and as the same user as Exec. The caller's environment must select the same
// engine. The environment inside is in a file, because every user can read a command line; Close removes the file.
func (b *box) CommandPrefix() ([]string, error) {
	if b.commands.Closed() {
		return nil, sandboxes.ErrClosed
	}
	var text strings.Builder
	for _, entry := range b.command(sandboxes.Command{}).Env {
		if err := syntax.CheckEnvLine(string(entry)); err != nil {
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
