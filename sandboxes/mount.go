package sandboxes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mount shows a host file or folder inside the sandbox.
type Mount struct {
	Host     string // absolute; must exist
	Inside   string // absolute
	ReadOnly bool
	// Exclusive means that the host folder belongs to this run alone. A provider with Copy files accepts a writable mount only if
	// it is set; the caller reads the results with a Fetcher.
	Exclusive bool
}

// Source returns the mount's host path with all links resolved, and its file info. It refuses every host path that would
// break the isolation: the root, kernel and device file systems, sockets, and anything else that is neither a file nor a
// folder. The error does not name the mount. Every isolating provider calls Source.
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
	if exposesSystem(host) {
		return "", nil, fmt.Errorf("%w: it would open the sandbox; name the file or folder below it that is needed", ErrUnsupported)
	}
	switch info.Mode().Type() {
	case 0, fs.ModeDir:
		return host, info, nil
	case fs.ModeSocket:
		return "", nil, fmt.Errorf("%w: it is a socket: its server would work for the agent, outside the sandbox", ErrUnsupported)
	}
	return "", nil, fmt.Errorf("%w: it is neither a file nor a folder", ErrUnsupported)
}

// exposesSystem reports whether a path exposes more than ordinary files.
func exposesSystem(path string) bool {
	within := func(dir string) bool { return IsInside(path, dir) }
	return path == "/" || slices.ContainsFunc([]string{"/proc", "/sys", "/dev", "/run"}, within)
}

// IsInside reports whether a path is the folder or below it. Both must be clean.
func IsInside(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
