// Package syntax writes what the programs of container engines read, and refuses what they would read as something else. Package
// container calls it. It holds no state.
package syntax

import (
	"encoding/csv"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Mount is a mount as --mount takes it: fields of one line of CSV, so that no character of a path has a meaning. more is
// one more field, or empty.
func Mount(kind string, m sandboxes.Mount, more string) (string, error) {
	if strings.ContainsAny(m.Host+m.Inside, "\n\r\x00") {
		return "", fmt.Errorf("mount %q: the path has a line break or NUL in it", m.Host)
	}
	fields := []string{"type=" + kind, "src=" + m.Host, "dst=" + m.Inside}
	switch {
	case m.ReadOnly && kind == "volume":
		fields = append(fields, "ro") // the only word that podman 4 knows there
	case m.ReadOnly:
		fields = append(fields, "readonly")
	}
	if more != "" {
		fields = append(fields, more)
	}
	var line strings.Builder
	w := csv.NewWriter(&line)
	if err := w.Write(fields); err != nil {
		return "", err
	}
	w.Flush()
	return strings.TrimSuffix(line.String(), "\n"), w.Error()
}

// maxEnvLine is how much of one line of an environment file the engines' programs read.
const maxEnvLine = 60 << 10

// CheckEnvLine refuses an entry that would be read from a line as another one.
func CheckEnvLine(entry string) error {
	name, _, _ := strings.Cut(entry, "=")
	switch {
	case strings.ContainsAny(entry, "\r\n\x00"), !utf8.ValidString(entry), len(entry) > maxEnvLine,
		strings.HasPrefix(name, "#"), strings.ContainsAny(name, " \t*"):
		return fmt.Errorf("the environment's %q does not fit on a line of a file: %w; use Exec", name, sandboxes.ErrUnsupported)
	}
	return nil
}
