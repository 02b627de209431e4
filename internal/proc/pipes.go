package proc

import (
	"errors"
	"io"
	"os"
	"reflect"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lateOutput is how long output may arrive after all processes have ended. Only an escaped process can send any.
	lateOutput = 200 * time.Millisecond
	// lateInput is how long Finish waits for a blocked Read of the input.
	lateInput = time.Second
)

// Pipes connects the standard files of one process with readers and writers. The process holds real pipes, so that no
// intermediary can stall or alter the data, and a process that escapes the killing cannot block the waiting caller. One
// goroutine calls the methods, in the order in which they are declared.
type Pipes struct {
	input       io.Reader
	writers     [2]io.Writer
	ends        [3]*os.File // the process's ends
	stdin       *os.File    // our end; nil without input
	outputs     [2]*os.File // our ends; nil where nothing is copied
	copying     sync.WaitGroup
	inputCopied chan struct{} // closed when copying of the input has ended; nil without input
	failed      chan error    // receives the error of the input
}

// OpenPipes opens the pipes. A nil reader or writer is the null device. If stdout and stderr are the same writer, they
// share one pipe, which keeps the order of the output. After an error nothing stays open.
func OpenPipes(stdin io.Reader, stdout, stderr io.Writer) (_ *Pipes, err error) {
	p := &Pipes{input: stdin, writers: [2]io.Writer{stdout, stderr}}
	defer func() {
		if err != nil {
			p.CloseEnds()
			p.Abandon()
		}
	}()
	if stdin == nil || stdout == nil || stderr == nil {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		p.ends = [3]*os.File{null, null, null}
	}
	if stdin != nil {
		if p.ends[0], p.stdin, err = os.Pipe(); err != nil {
			return nil, err
		}
	}
	for i, w := range p.writers {
		switch {
		case w == nil:
		case i == 1 && Same(stdout, w):
			p.ends[2] = p.ends[1]
		default:
			if p.outputs[i], p.ends[i+1], err = os.Pipe(); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// Same reports whether a and b are the same writer.
func Same(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

// Chown changes the owner of the pipes to the process's user, who can then reopen them by name, such as /dev/stdout.
func (p *Pipes) Chown(uid, gid int) error {
	for _, file := range p.parentEnds() {
		if file != nil {
			if err := file.Chown(uid, gid); err != nil {
				return err
			}
		}
	}
	return nil
}

// Ends returns the process's standard input, output and error output. A file may occur twice.
func (p *Pipes) Ends() [3]*os.File { return p.ends }

// CloseEnds closes our copies of the process's ends, after the start.
func (p *Pipes) CloseEnds() {
	for i, file := range p.ends {
		if file != nil && (i == 0 || file != p.ends[i-1]) {
			_ = file.Close()
		}
	}
}

// Abandon closes our ends; it replaces Start when no process was started.
func (p *Pipes) Abandon() {
	for _, file := range p.parentEnds() {
		if file != nil {
			_ = file.Close()
		}
	}
}

func (p *Pipes) parentEnds() [3]*os.File { return [3]*os.File{p.stdin, p.outputs[0], p.outputs[1]} }

// Start starts copying in the background.
func (p *Pipes) Start() {
	if p.stdin != nil {
		p.inputCopied, p.failed = make(chan struct{}), make(chan error, 1)
		go p.feed()
	}
	for i, w := range p.writers {
		if r := p.outputs[i]; r != nil {
			p.copying.Go(func() { copyOutput(w, r) })
		}
	}
}

// Failed returns, after Start, a channel that receives the read error of the input.
func (p *Pipes) Failed() <-chan error { return p.failed }

// feed copies the input to the process. It closes the pipe only after the whole input: a process must not mistake a
// truncated input for a complete one.
func (p *Pipes) feed() {
	defer close(p.inputCopied)
	_, err := io.Copy(p.stdin, p.input)
	switch {
	case err == nil:
		_ = p.stdin.Close()
	case errors.Is(err, unix.EPIPE), errors.Is(err, os.ErrClosed):
		// The process reads no further.
	default:
		p.failed <- err
	}
}

// Finish ends the copying after all processes have ended. Data still in the pipes reaches the writers. Finish abandons a
// blocked Read of the input; an [io.PipeReader] is closed, which ends its Read.
func (p *Pipes) Finish() {
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	if r, ok := p.input.(*io.PipeReader); ok {
		_ = r.CloseWithError(os.ErrClosed) // always nil
	}
	for _, r := range p.outputs {
		if r != nil {
			_ = r.SetReadDeadline(time.Now().Add(lateOutput))
		}
	}
	p.copying.Wait()
	p.Abandon()
	if p.inputCopied == nil {
		return
	}
	select {
	case <-p.inputCopied:
	default:
		select {
		case <-p.inputCopied:
		case <-time.After(lateInput):
		}
	}
}
