package sandboxes_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
)

// logged decorates a provider and its sandboxes, as a caller outside this module might.
type logged struct{ sandboxes.Provider }

func (l logged) Unwrap() sandboxes.Provider { return l.Provider }

func (l logged) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	s, err := l.Provider.Open(ctx, spec)
	return noted{s}, err
}

type noted struct{ sandboxes.Sandbox }

func (n noted) Unwrap() sandboxes.Sandbox { return n.Sandbox }

// noticing is a provider whose sandboxes have notices.
type noticing struct{ *sandboxes.None }

func (n noticing) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	s, err := n.None.Open(ctx, spec)
	return noticed{s}, err
}

type noticed struct{ sandboxes.Sandbox }

func (noticed) Notices() []sandboxes.Notice {
	return []sandboxes.Notice{{Text: "a limit was reached"}}
}

// A decorated provider and its sandboxes still offer their optional interfaces.
func TestDecoratorsKeepOptionalInterfaces(t *testing.T) {
	t.Parallel()
	var p sandboxes.Provider = logged{logged{noticing{sandboxes.NewNone(sandboxes.NoneConfig{})}}}
	reaper, ok := sandboxes.As[sandboxes.Reaper](p)
	if !ok {
		t.Fatal("the decorated provider is no Reaper")
	}
	box, err := p.Open(t.Context(), sandboxes.Spec{Run: "decorated-" + time.Now().Format(time.RFC3339Nano), Worktree: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if got := sandboxes.NoticesOf(box); !slices.Equal(got, noticed{}.Notices()) {
		t.Errorf("notices are %q", got)
	}
	started := &signalWriter{wrote: make(chan struct{})}
	ended := make(chan sandboxes.Exit, 1)
	run := "decorated-reap-" + time.Now().Format(time.RFC3339Nano)
	other, err := p.Open(t.Context(), sandboxes.Spec{Run: run, Worktree: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		exit, _ := other.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", "echo started; exec sleep 1000"}, Stdout: started})
		ended <- exit
	}()
	<-started.wrote
	if err := reaper.Reap(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if exit := <-ended; exit.Signal != "SIGKILL" {
		t.Errorf("the command of the reaped run ended with %+v", exit)
	}
	if err := errors.Join(box.Close(t.Context()), other.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

// signalWriter signals its first write.
type signalWriter struct {
	bytes.Buffer
	wrote chan struct{}
}

func (w *signalWriter) Write(p []byte) (int, error) {
	if w.Len() == 0 {
		close(w.wrote)
	}
	return w.Buffer.Write(p)
}

func TestAsFindsNothing(t *testing.T) {
	t.Parallel()
	if _, ok := sandboxes.As[sandboxes.RefusalReporter](logged{sandboxes.NewNone(sandboxes.NoneConfig{})}); ok {
		t.Error("it finds what is not there")
	}
	if _, ok := sandboxes.As[sandboxes.Reaper](nil); ok {
		t.Error("nil is a Reaper")
	}
}
