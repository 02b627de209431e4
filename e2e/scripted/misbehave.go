package scripted

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// misbehave does what a real agent should not do but sometimes does.
func (a *agent) misbehave(act Action) error {
	switch {
	case act.IgnoreTerm:
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		return nil
	case act.Orphan:
		return a.orphan()
	case act.Hang:
		time.Sleep(math.MaxInt64)
		return nil
	case act.Kill != "":
		if err := syscall.Kill(os.Getpid(), signals()[act.Kill]); err != nil {
			return err
		}
		time.Sleep(math.MaxInt64) // until the signal arrives
		return nil
	case act.Exit != nil:
		return exitError(*act.Exit)
	case act.Garbage > 0:
		return garbage(a.stdout, act.Garbage)
	case act.Huge > 0:
		return huge(a.stdout, act.Huge)
	case act.Grease:
		_, err := io.WriteString(a.stdout, invalidEvents)
		return err
	}
	return fmt.Errorf("an action says nothing")
}

// signals are the signals by which an agent may end itself.
func signals() map[string]syscall.Signal {
	return map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL}
}

// orphan starts a process in a new session that keeps the agent's output open, and prints its PID.
func (a *agent) orphan() error {
	cmd := exec.Command("sleep", "86400")
	if f, ok := a.stdout.(*os.File); ok {
		cmd.Stdout = f
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "orphan %d\n", cmd.Process.Pid)
	return cmd.Process.Release()
}

// garbage writes n bytes of NULs, escapes, broken UTF-8 and misplaced line ends.
func garbage(w io.Writer, n int) error {
	unit := []byte("\x00\x1b[31m\xff\xfe\xc3\r\n\x07\xe2\x80\xae{\"type\":\x80\u2028\n")
	b := bytes.Repeat(unit, n/len(unit)+1)
	_, err := w.Write(b[:n])
	return err
}

// huge writes a line of n bytes, in pieces.
func huge(w io.Writer, n int) error {
	piece := strings.Repeat("x", 1<<16)
	for n > 0 {
		k, err := io.WriteString(w, piece[:min(n, len(piece))])
		if err != nil {
			return err
		}
		n -= k
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// invalidEvents is output that resembles agents' events but is not valid.
const invalidEvents = `{"type":"grease.unknown","payload":{"deep":[[[[]]]]}}
{"type":42}
{"no type":true}
{"type":"assistant","message":"not an object"}
{"type":"item.completed","item":null}
{"type":"result","unfinished":
[1,2,3]
null
`
