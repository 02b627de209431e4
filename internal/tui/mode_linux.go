package tui

import "golang.org/x/sys/unix"

const (
	getMode = unix.TCGETS
	setMode = unix.TCSETSW
)
