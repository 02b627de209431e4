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
	// lateOutput is how long output may still come after all processes have ended. Only one that escaped can use it.
	lateOutput = 200 * time.Millisecond
	// lateInput is how long a Read of the input is waited for after the end.
	lateInput = time.Second
)

// Pipes connect the standard files of one process with readers and writers. The process has the other ends of real pipes:
// nothing in between can stall or lie about what passes, and one that escapes its killing cannot hold up who waits for it.
// The methods are called in the order in which they stand here, by one goroutine.
type Pipes struct {
	input   io.Reader
	writers [2]io.Writer
	ends    [3]*os.File // the process's
	stdin   *os.File    // ours; nil without an input
	outputs [2]*os.File // ours; nil where nothing is copied
	copying sync.WaitGroup
	fed     chan struct{} // closed when the copying of the input has ended; nil without one
	failed  chan error    // the input failed
}

// OpenPipes makes them. Where there is no reader or writer the process gets the null device; one writer for both outputs
// gets one pipe, so that what comes keeps its order. On an error nothing stays open.
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

// Same reports whether both are one writer.
func Same(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

// Chown gives the pipes to the user who must be able to open them again by name, such as /dev/stdout.
func (p *Pipes) Chown(uid, gid int) error {
	for _, file := range p.ours() {
		if file != nil {
			if err := file.Chown(uid, gid); err != nil {
				return err
			}
		}
	}
	return nil
}

// Ends are the process's standard input, output and error output. A file may be in more than one place.
func (p *Pipes) Ends() [3]*os.File { return p.ends }

// CloseEnds closes the process's ends on our side, once it has them.
func (p *Pipes) CloseEnds() {
	for i, file := range p.ends {
		if file != nil && (i == 0 || file != p.ends[i-1]) {
			_ = file.Close()
		}
	}
}

// Abandon closes our ends, in the place of Start, when there will be no process.
func (p *Pipes) Abandon() {
	for _, file := range p.ours() {
		if file != nil {
			_ = file.Close()
		}
	}
}

func (p *Pipes) ours() [3]*os.File { return [3]*os.File{p.stdin, p.outputs[0], p.outputs[1]} }

// Start copies in the background.
func (p *Pipes) Start() {
	if p.stdin != nil {
		p.fed, p.failed = make(chan struct{}), make(chan error, 1)
		go p.feed()
	}
	for i, w := range p.writers {
		if r := p.outputs[i]; r != nil {
			p.copying.Go(func() { copyOutput(w, r) })
		}
	}
}

// Failed gives, after Start, the error of the input's Read.
func (p *Pipes) Failed() <-chan error { return p.failed }

// feed gives the process its input. It closes the pipe only after all of it: a process whose input failed must not take
// what it got for the whole.
func (p *Pipes) feed() {
	defer close(p.fed)
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

// Finish ends the copying, once all processes have ended. What is in the pipes still reaches the writers; a Read of the
// input that does not return is abandoned, and an [io.PipeReader] is closed, so that it does.
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
	if p.fed == nil {
		return
	}
	select {
	case <-p.fed:
	default:
		select {
		case <-p.fed:
		case <-time.After(lateInput):
		}
	}
}
