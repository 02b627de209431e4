package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/proc"
)

// refusalOf returns the reason why a command could not be started.
func refusalOf(err error, c Command) Refusal {
	r := Refusal{Text: err.Error()}
	if info, statErr := os.Stat(string(c.Dir)); statErr != nil || !info.IsDir() {
		r.Reason, r.Text = ReasonMissing, fmt.Sprintf("its folder %s: no such folder inside", c.Dir)
		return r
	}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		r.Reason = ReasonNotFound
	case errors.Is(err, fs.ErrNotExist):
		r.Reason = ReasonMissing
	case errors.Is(err, fs.ErrPermission):
		r.Reason = ReasonDenied
	case errors.Is(err, unix.E2BIG):
		r.Text += "; pass long text on its standard input"
	}
	return r
}

// enter executes a command that a host program starts, with the engine's settings and the filter. It returns only with an
// error.
func enter(argv []string) error {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	path, err := proc.Lookup(argv[0], "", os.Environ())
	if err != nil {
		return &entryError{fmt.Errorf("%s: %w", argv[0], err)}
	}
	return &entryError{fmt.Errorf("start %s: %w", argv[0], unix.Exec(path, argv, os.Environ()))}
}

// chownFolders changes the owner of folders to the user of commands: UID GID DIR… An earlier sandbox of the run may have closed
// them. A folder comes before those in it.
func chownFolders(args []string) error {
	uid, err := strconv.Atoi(args[0])
	gid, err2 := strconv.Atoi(args[1])
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	folders := args[2:]
	for _, dir := range folders { // only the owner of a folder can open it
		if err := errors.Join(os.Chown(dir, 0, 0), disk.Unlock(dir)); err != nil {
			return fmt.Errorf("give the sandbox its folders: %w", err)
		}
	}
	for _, dir := range slices.Backward(folders) {
		if err := os.Chown(dir, uid, gid); err != nil {
			return fmt.Errorf("give the sandbox its folders: %w", err)
		}
	}
	return nil
}
