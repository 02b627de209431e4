//go:build !linux

package inside

import (
	"context"
	"errors"
	"io"
)

var errLinux = errors.New("containers run Linux programs only")

func runInit(context.Context, []string) error { return errLinux }

func runCommand(io.Reader, io.Writer) error { return errLinux }

func filter() error { return errLinux }

func enter([]string) error { return errLinux }

func chownFolders([]string) error { return errLinux }

func tunnel(context.Context, io.Reader, io.Writer, io.Writer) error { return errLinux }
