// Package syntax formats input of the engines' programs, and refuses values that these would misread. Package container
// uses it. It has no state.
package syntax

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Mount returns the value of --mount for a mount: the fields of one CSV line, so that no character of a path is special.
// more is an additional field, or "".
func Mount(kind string, m sandboxes.Mount, more string) (string, error) {
	if strings.ContainsAny(m.Host+m.Inside, "\n\r\x00") {
		return "", fmt.Errorf("mount %q: the path has a line break or NUL in it", m.Host)
	}
	fields := []string{"type=" + kind, "src=" + m.Host, "dst=" + m.Inside}
	switch {
	case m.ReadOnly && kind == "volume":
		fields = append(fields, "ro") // the only spelling that podman 4 accepts there
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

// Covers reports whether a worktree at this path inside would cover the home, or files without which nothing runs there.
func Covers(dir, home string) bool {
	for _, whole := range []string{"/.ralph", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys"} {
		if sandboxes.IsInside(dir, whole) {
			return true
		}
	}
	usual := []string{
		"/run", "/tmp", "/usr", "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/local", "/usr/local/bin", "/usr/sbin", "/usr/share",
		"/var",
	}
	return slices.Contains(usual, dir) || dir != "" && dir != "/" && sandboxes.IsInside(home, dir)
}

// maxEnvLine is how many bytes of a line in an environment file the engines' programs read.
const maxEnvLine = 60 << 10

// CheckEnvLine returns an error for an entry that an engine's program would misread from a line of a file.
func CheckEnvLine(entry string) error {
	name, _, _ := strings.Cut(entry, "=")
	switch {
	case strings.ContainsAny(entry, "\r\n\x00"), !utf8.ValidString(entry), len(entry) > maxEnvLine,
		strings.HasPrefix(name, "#"), strings.ContainsAny(name, " \t*"):
		return fmt.Errorf("the environment's %q does not fit on a line of a file: %w; use Exec", name, sandboxes.ErrUnsupported)
	}
	return nil
}
