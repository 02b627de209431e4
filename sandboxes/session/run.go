package session

import (
	"context"
	"io"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// maxLogs is how many commands the artefacts tell of: the last ones.
const maxLogs = 64

// Result is a command that ran to its end.
type Result struct {
	Argv     []string       `json:"argv"`
	Exit     sandboxes.Exit `json:"exit"`
	Stdout   []byte         `json:"stdout"` // the end of it, at most Config.MaxOutput bytes
	Stderr   []byte         `json:"stderr"`
	Dropped  int64          `json:"dropped"` // bytes of both that are not kept
	Started  time.Time      `json:"started"`
	Duration time.Duration  `json:"duration"`
}

// Run runs one command. The error is that of [sandboxes.Sandbox]: nil means that the command ran, however it ended. The
// command's own writers get all of its output.
func (s *Session) Run(ctx context.Context, cmd sandboxes.Command) (Result, error) {
	out, errs := proc.NewTail(s.config.MaxOutput), proc.NewTail(s.config.MaxOutput)
	first, second := new(sync.Mutex), new(sync.Mutex)
	if same(cmd.Stdout, cmd.Stderr) {
		second = first // each writer is called by one goroutine at a time
	}
	cmd.Stdout, cmd.Stderr = also(out, cmd.Stdout, first), also(errs, cmd.Stderr, second)
	r := Result{Argv: slices.Clone(cmd.Argv), Started: time.Now()}
	exit, err := s.box.Exec(ctx, cmd)
	r.Exit, r.Duration = exit, time.Since(r.Started)
	r.Stdout, r.Stderr = out.Bytes(), errs.Bytes()
	r.Dropped = out.Total() + errs.Total() - int64(len(r.Stdout)+len(r.Stderr))
	if err != nil {
		return r, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs = append(s.logs, r)
	if over := len(s.logs) - maxLogs; over > 0 {
		s.logs = slices.Delete(s.logs, 0, over)
	}
	return r, nil
}

// same reports whether both are one writer.
func same(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

// also writes to the tail and, when there is one, to the caller's writer.
func also(tail *proc.Tail, to io.Writer, mu *sync.Mutex) io.Writer {
	if to == nil {
		return tail
	}
	return &tee{tail: tail, to: to, mu: mu}
}

type tee struct {
	tail *proc.Tail
	mu   *sync.Mutex
	to   io.Writer // guarded by mu
	err  error     // what the writer said; it is not called again
}

// Write always succeeds, so that the log goes on when the caller's writer does not.
func (t *tee) Write(p []byte) (int, error) {
	n, _ := t.tail.Write(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		_, t.err = t.to.Write(p)
	}
	return n, nil
}
