package container

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// enter becomes a command that a program of the host starts by CommandPrefix: as the engine has set it up, behind the
// filter. It returns only with an error.
func enter(argv []string) error {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	path, err := find(argv[0], os.Environ())
	if err != nil {
		return &entryError{fmt.Errorf("%s: %w", argv[0], err)}
	}
	return &entryError{fmt.Errorf("start %s: %w", argv[0], unix.Exec(path, argv, os.Environ()))}
}
