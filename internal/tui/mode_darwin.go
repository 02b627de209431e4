package tui

import "golang.org/x/sys/unix"

const (
	getMode = unix.TIOCGETA
	setMode = unix.TIOCSETAW
)
