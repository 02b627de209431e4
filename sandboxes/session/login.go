package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// maxLogin is the maximum size of a login file in bytes.
const maxLogin = 1 << 20

// loginScript writes a file below the home with permissions for its owner only.
const loginScript = `set -eu
umask 077
mkdir -p -- "$(dirname -- "$HOME/$1")"
cat >"$HOME/$1"`

// longText matches the strings of a JSON file that are long enough to be credentials.
var longText = pattern.Lazy(`"([^"\\]{16,})"`)

// logIn copies the login files into the sandbox.
func (s *Session) logIn(ctx context.Context) error {
	for _, name := range s.config.Logins {
		content, err := readLogin(s.config.Home, name)
		if err == nil {
			err = s.mustScript(ctx, loginScript, sandboxes.Command{Stdin: strings.NewReader(content)}, name)
		}
		if err != nil {
			return fmt.Errorf("copy the login %q: %w", name, err)
		}
		for _, m := range longText().FindAllStringSubmatch(content, -1) {
			s.secrets = append(s.secrets, m[1])
		}
		s.notice("the login %s is in the sandbox, where every command can read it", name)
	}
	return nil
}

// readLogin reads a login file of this host.
func readLogin(home, name string) (string, error) {
	if !filepath.IsLocal(name) {
		return "", errors.New("it is not a path below the home folder")
	}
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", err
		}
	}
	f, err := os.Open(filepath.Join(home, name))
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, maxLogin+1))
	if err == nil && len(content) > maxLogin {
		err = fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, maxLogin)
	}
	return string(content), err
}
