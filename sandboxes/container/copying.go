package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/mirror"
)

// maxList bounds what a sandbox's list of files may make us hold.
const maxList = 256 << 20

// helper is a call of ralph's own program inside.
func (c *copies) helper(words ...string) []string {
	return append(append([]string{helperPath}, c.box.provider.config.Helper.Args...), words...)
}

// run runs the helper inside, to its regular end.
func (c *copies) run(ctx context.Context, cmd sandboxes.Command) error {
	errs := proc.NewTail(1 << 10)
	cmd.Stderr, cmd.Dir = errs, "/"
	exit, err := c.box.exec(ctx, cmd, true)
	if err != nil {
		return err
	}
	if !exit.OK() {
		return fmt.Errorf("the helper inside fails (exit status %d): %s", exit.Code, lastLine(errs.String()))
	}
	return nil
}

// put gives the helper something to read.
func (c *copies) put(ctx context.Context, in io.Reader, words ...string) error {
	return c.run(ctx, sandboxes.Command{Argv: c.helper(words...), Stdin: in})
}

// list is what a folder inside holds, by its own word.
func (c *copies) list(ctx context.Context, f *folder) ([]mirror.Entry, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &bounded{room: maxList, full: func(err error) { cancel(err) }}
	if err := c.run(ctx, sandboxes.Command{Argv: c.helper(insideList, f.role, f.inside), Stdout: out}); err != nil {
		return nil, err
	}
	list, err := mirror.Decode(out.Bytes(), f.Limits)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	return list, nil
}

// bounded is a buffer that takes so much and no more.
type bounded struct {
	bytes.Buffer
	room int
	full func(error)
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.room -= len(p); b.room < 0 {
		err := fmt.Errorf("%w: their list has more than %d bytes", errRefused, maxList)
		b.full(err)
		return 0, err
	}
	return b.Buffer.Write(p)
}

// fetch asks for files of a folder inside.
func (c *copies) fetch(ctx context.Context, f *folder) func([]string) (io.ReadCloser, error) {
	return func(paths []string) (io.ReadCloser, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		r, w := io.Pipe()
		s := &stream{PipeReader: r, cancel: cancel, done: make(chan struct{})}
		go func() {
			defer close(s.done)
			err := c.run(ctx, sandboxes.Command{Argv: c.helper(insidePack, f.inside), Stdin: joined(paths), Stdout: w})
			_ = w.CloseWithError(err) // io.EOF for nil
		}()
		return s, nil
	}
}

// stream is what a helper writes. Closing it ends the helper.
type stream struct {
	*io.PipeReader
	cancel context.CancelCauseFunc
	done   chan struct{}
}

func (s *stream) Close() error {
	s.cancel(errors.New("the rest is not wanted"))
	err := s.PipeReader.Close()
	<-s.done
	return err
}

// pipeEnd is where a writer writes what a helper reads.
type pipeEnd = io.PipeWriter

// source is the reading end of a pipe whose writer runs on its own.
type source struct {
	*io.PipeReader
	done chan error
}

func pipeFrom(write func(*pipeEnd) error) *source {
	r, w := io.Pipe()
	s := &source{PipeReader: r, done: make(chan error, 1)}
	go func() {
		err := write(w)
		_ = w.CloseWithError(err)
		s.done <- err
	}()
	return s
}

// end waits for the writer; nobody reads any more.
func (s *source) end() error {
	_ = s.Close()
	if err := <-s.done; !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

// joined are paths as the helper reads them.
func joined(paths []string) io.Reader {
	return strings.NewReader(strings.Join(paths, "\x00"))
}
