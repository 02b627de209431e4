package tui

import (
	"os"

	"golang.org/x/sys/unix"
)

// foreground reports that this process may read the terminal and change its mode: a job in the background would be stopped.
func foreground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp() // an error: it has no jobs
}

// eachKey has the terminal hand over each key as it is typed, without showing it. Everything else stays: Ctrl-C, Ctrl-Z and
// Ctrl-S do what they do without a view, and lines end as usual, so that the terminal of a killed ralph is nearly as it was.
// The function that it returns undoes it.
func eachKey(f *os.File) (undo func(), err error) {
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, getMode)
	if err != nil {
		return nil, err
	}
	keys := *before
	keys.Lflag &^= unix.ICANON | unix.ECHO
	keys.Cc[unix.VMIN], keys.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, setMode, &keys); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(fd, setMode, before) }, nil
}
