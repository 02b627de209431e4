package proc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Foreground runs an interactive program, such as an editor or a pager. The program stays in this process's session, so it
// shares the terminal and its signals. It reads Stdin only if that is an *os.File. When ctx ends, the program is killed,
// but not its children. The fields Mark, Tied, Memory, Interrupt and Grace of the Spec have no effect.
func Foreground(ctx context.Context, s Spec) (Exit, error) {
	path, err := Lookup(s.Argv[0], s.Dir, s.Env)
	if err != nil {
		return Exit{}, &StartError{Name: s.Argv[0], Err: err}
	}
	c := exec.CommandContext(ctx, path, s.Argv[1:]...)
	c.Dir, c.Env, c.Stdout, c.Stderr = s.Dir, absolutePath(s.Env), s.Stdout, s.Stderr
	if f, ok := s.Stdin.(*os.File); ok { // so no goroutine reads ahead of the program
		c.Stdin = f
	}
	err = c.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	if !ended || ctx.Err() != nil {
		return Exit{}, err
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{Code: 128 + int(ws.Signal()), Signal: ws.Signal()}, nil
	}
	return Exit{Code: exit.ExitCode()}, nil
}
