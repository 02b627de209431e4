package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
)

// command is one line of commands.jsonl.
type command struct {
	Number  int64     `json:"number"`
	Argv    []string  `json:"argv"`
	Dir     string    `json:"dir,omitempty"`
	Env     []string  `json:"env,omitempty"` // the names
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	Code    int       `json:"code"`
	Signal  string    `json:"signal,omitempty"`
	Error   string    `json:"error,omitempty"` // why it is not known to have run to its end
	Stdout  string    `json:"stdout"`          // the log, in the folder of artefacts
	Stderr  string    `json:"stderr"`
	Dropped int64     `json:"dropped,omitempty"` // bytes that are in neither log
}

// Exec runs one command inside as [sandboxes.Sandbox] does, and records it with what it prints. An error of the record
// is returned too: nil means that the command ran and all of it is on disk.
func (in *Instance) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	number := in.count.Add(1)
	mask := newMask(slices.Concat(in.env, cmd.Env), in.secrets)
	c := command{Number: number, Dir: mask.text(cmd.Dir), Started: time.Now().UTC()}
	for _, a := range cmd.Argv {
		c.Argv = append(c.Argv, mask.text(a))
	}
	for _, entry := range cmd.Env {
		name, _, _ := strings.Cut(entry, "=")
		c.Env = append(c.Env, name)
	}
	c.Stdout = filepath.Join(logsName, fmt.Sprintf("%04d.stdout", number))
	c.Stderr = filepath.Join(logsName, fmt.Sprintf("%04d.stderr", number))
	out, err := in.openLog(c.Stdout, mask)
	if err != nil {
		return sandboxes.Exit{}, err
	}
	errs, err := in.openLog(c.Stderr, mask)
	if err != nil {
		return sandboxes.Exit{}, errors.Join(err, out.close())
	}
	first, second := new(sync.Mutex), new(sync.Mutex)
	if same(cmd.Stdout, cmd.Stderr) {
		second = first // each writer is called by one goroutine at a time
	}
	cmd.Stdout, cmd.Stderr = both(out, cmd.Stdout, first), both(errs, cmd.Stderr, second)
	exit, err := in.box.Exec(ctx, cmd)
	c.Seconds, c.Code, c.Signal = time.Since(c.Started).Seconds(), exit.Code, exit.Signal
	if err != nil {
		c.Error = mask.text(err.Error())
	}
	logs := errors.Join(out.close(), errs.close())
	c.Dropped = out.dropped + errs.dropped
	return exit, errors.Join(err, logs, in.record.command(c))
}

// openLog makes a log; an existing one is never written to.
func (in *Instance) openLog(name string, m *mask) (*log, error) {
	f, err := in.record.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrClosed) {
		return nil, sandboxes.ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("open the log of a command: %w", err)
	}
	l := &log{file: f, room: in.maxLog}
	l.mask = masking{mask: m, to: bounded{l}}
	return l, nil
}

// log is what a command prints, without secrets, up to a limit.
type log struct {
	file    *os.File
	mask    masking
	room    int64
	dropped int64
	err     error // why nothing is written any more
}

// Write always succeeds: a full disk ends the log, not the command; close tells it.
func (l *log) Write(p []byte) (int, error) {
	if over := l.room == 0 || l.err != nil; over {
		l.dropped += int64(len(p))
	} else {
		_, _ = l.mask.Write(p)
	}
	return len(p), nil
}

func (l *log) close() error {
	_ = l.mask.Close()
	if err := errors.Join(l.err, l.file.Close()); err != nil {
		return fmt.Errorf("write the log of a command: %w", err)
	}
	return nil
}

// bounded is where a log goes when it is masked.
type bounded struct{ *log }

func (b bounded) Write(p []byte) (int, error) {
	n := min(int64(len(p)), b.room)
	if b.err == nil {
		_, b.log.err = b.file.Write(p[:n])
	}
	b.room -= n
	b.dropped += int64(len(p)) - n
	return len(p), nil
}

// same reports whether both are one writer.
func same(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

// both writes to the log and to the caller's writer.
func both(l *log, to io.Writer, mu *sync.Mutex) io.Writer {
	if to == nil {
		return l
	}
	return &tee{log: l, to: to, mu: mu}
}

type tee struct {
	log *log
	mu  *sync.Mutex
	to  io.Writer // guarded by mu
	err error     // what the writer said; it is not called again
}

func (t *tee) Write(p []byte) (int, error) {
	n, _ := t.log.Write(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		_, t.err = t.to.Write(p)
	}
	return n, nil
}
