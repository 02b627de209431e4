package container

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/sandboxes"
)

// envFile holds the commands' environment for CommandPrefix, in the state folder.
const envFile = "env"

// maxEnvLine is what the engines' programs read of one line of an environment file.
const maxEnvLine = 60 << 10

// CommandPrefix is what to put before a command's argv to run it in the container by the engine's program, in the folder,
// with the environment and as the user that Exec gives it. The caller's own environment has to lead the program to the
// same engine. The environment is in a file, which goes with the sandbox: a command line is there for everybody to read.
// Where files are copied, the host gets what such a command has written after the next Exec, or at Close.
func (b *box) CommandPrefix() ([]string, error) {
	if b.isClosed() {
		return nil, sandboxes.ErrClosed
	}
	o := b.order(sandboxes.Command{})
	var text strings.Builder
	for _, entry := range o.Env {
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
	if b.copies != nil {
		b.copies.enter()
	}
	argv := b.provider.engine.argv("exec", "--interactive", "--workdir", b.workdir, "--env-file", path, b.name)
	c := b.provider.config
	if c.unfiltered() {
		return argv, nil
	}
	return append(append(append(argv, helperPath), c.Helper.Args...), insideEnter), nil
}

// checkEnvLine refuses an entry that would be another one when it is read as a line.
func checkEnvLine(entry string) error {
	name, _, _ := strings.Cut(entry, "=")
	switch {
	case strings.ContainsAny(entry, "\r\n\x00"), !utf8.ValidString(entry), len(entry) > maxEnvLine,
		strings.HasPrefix(name, "#"), strings.ContainsAny(name, " \t*"):
		return fmt.Errorf("the environment's %q does not fit on a line of a file: %w; use Exec", name, sandboxes.ErrUnsupported)
	}
	return nil
}
