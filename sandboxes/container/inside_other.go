//go:build !linux

package container

import (
	"context"
	"errors"
	"io"
)

var errLinux = errors.New("containers run Linux programs only")

func stay(context.Context, []string) error { return errLinux }

func attend(io.Reader, io.Writer) error { return errLinux }

func filter() error { return errLinux }

func enter([]string) error { return errLinux }

func own([]string) error { return errLinux }

func lead(context.Context, io.Reader, io.Writer) error { return errLinux }

func copyInside([]string, io.Reader, io.Writer) error { return errLinux }
