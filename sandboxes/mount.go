package sandboxes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Mount shows a host file or folder inside.
type Mount struct {
	Host     string // absolute; must exist
	Inside   string // absolute
	ReadOnly bool
	// Own says that the host's folder is this run's alone. Only then a provider with Copy files may write to it: it makes
	// the folder what the sandbox has, also after a crash.
	Own bool
}

// Source is the mount's host path with every link followed, and what is there. It refuses, with an error that does not
// name the mount, what would open a sandbox: the root, the file systems of kernel and devices, the sockets of the machine's
// services, and whatever is neither a file nor a folder. Every isolating provider asks it.
func (m Mount) Source() (string, fs.FileInfo, error) {
	if !filepath.IsAbs(m.Host) {
		return "", nil, errors.New("it is not an absolute path")
	}
	host, err := filepath.EvalSymlinks(m.Host)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, errors.New("it does not exist on the host")
	}
	if err != nil {
		return "", nil, err
	}
	info, err := os.Stat(host)
	if err != nil {
		return "", nil, err
	}
	if opens(host) {
		return "", nil, fmt.Errorf("%w: it would open the sandbox; name the file or folder below it that is needed", ErrUnsupported)
	}
	switch info.Mode().Type() {
	case 0, fs.ModeDir:
		return host, info, nil
	case fs.ModeSocket:
		return "", nil, fmt.Errorf("%w: it is a socket: whoever listens there works for the agent, outside the sandbox", ErrUnsupported)
	}
	return "", nil, fmt.Errorf("%w: it is neither a file nor a folder", ErrUnsupported)
}

// opens reports whether who sees a path sees more than files.
func opens(path string) bool {
	for _, dir := range []string{"/proc", "/sys", "/dev", "/run"} {
		if path == "/" || path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}
