package ptytest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

const multiplexer = "/dev/ptmx"

// New is Open for a test, which is skipped where there are no terminals. The test closes both sides when it ends.
func New(t *testing.T, rows, columns uint16) (tty, person *os.File) {
	t.Helper()
	tty, person, err := Open(rows, columns)
	if at := (*fs.PathError)(nil); errors.As(err, &at) && at.Path == multiplexer {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = tty.Close(), person.Close() })
	return tty, person
}

// Open makes a terminal: the side of a program, and that of the person who reads and types.
func Open(rows, columns uint16) (tty, person *os.File, err error) {
	person, err = os.OpenFile(multiplexer, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		tty, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, person.Close())
	}
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		return nil, nil, errors.Join(err, tty.Close(), person.Close())
	}
	return tty, person, nil
}
