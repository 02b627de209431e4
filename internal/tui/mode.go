package tui

import (
	"os"

	"golang.org/x/sys/unix"
)

// foreground reports whether this process may read the terminal and change its mode: a background job that tries is stopped.
func foreground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp() // an error: the terminal has no job control
}

// setKeyMode makes the terminal deliver each key at once, without echo. Everything else stays: Ctrl-C, Ctrl-Z and Ctrl-S work
// as without a view, and output line ends are unchanged, so that the terminal of a killed ralph is nearly as before. undo
// restores the mode.
func setKeyMode(f *os.File) (undo func(), err error) {
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
