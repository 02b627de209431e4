package sandboxtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
)

var openCases = map[string]func(*suite){
	"provider/describes itself": func(s *suite) {
		p := s.provider(s.T)
		if p.Name() == "" {
			s.Error("Name is empty")
		}
		c := p.Capabilities()
		if c.Files == "" || c.Isolation == "" {
			s.Errorf("Capabilities %+v leaves Files or Isolation open", c)
		}
		if err := p.Check(s.bounded()); err != nil {
			s.Errorf("Check: %v", err)
		}
	},
	"open/isolation that is asked for is there or refused": func(s *suite) {
		p := s.provider(s.T)
		box, err := p.Open(s.bounded(), sandboxes.Spec{
			Run: runID(s.T), Worktree: s.options.Worktree(s.T), RequireIsolation: true,
		})
		if p.Capabilities().Isolated() {
			if err != nil {
				s.Fatalf("Open: %v", err)
			}
			closeNow(s.T, box)
			return
		}
		if !errors.Is(err, sandboxes.ErrUnsupported) {
			s.Fatalf("Open gives %v, want ErrUnsupported", err)
		}
	},
	"open/worktree must exist": func(s *suite) {
		box, err := s.provider(s.T).Open(s.bounded(), sandboxes.Spec{
			Run: runID(s.T), Worktree: filepath.Join(s.options.Worktree(s.T), "missing"),
		})
		if err == nil {
			closeNow(s.T, box)
			s.Fatal("Open succeeds without a worktree")
		}
	},
	"open/context that has ended": func(s *suite) {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errStop)
		box, err := s.provider(s.T).Open(ctx, sandboxes.Spec{Run: runID(s.T), Worktree: s.options.Worktree(s.T)})
		if err == nil {
			closeNow(s.T, box)
		}
		if !errors.Is(err, errStop) {
			s.Fatalf("Open gives %v, want the context's cause", err)
		}
	},
	"files/both sides see them": func(s *suite) {
		r := s.open()
		r.write("from host.txt", []byte("host\n"))
		if got := r.text(`cat "from host.txt"; printf inside >"wörk"; mkdir -p a/b; printf deep >a/b/c`); got != "host\n" {
			s.Errorf("inside sees %q", got)
		}
		if err := r.Close(s.bounded()); err != nil {
			s.Fatal(err)
		}
		for name, want := range map[string]string{"wörk": "inside", "a/b/c": "deep", "from host.txt": "host\n"} {
			if got, err := os.ReadFile(filepath.Join(r.host, name)); err != nil || string(got) != want {
				s.Errorf("%s on the host: %q, %v", name, got, err)
			}
		}
	},
}

func closeNow(t *testing.T, box sandboxes.Sandbox) {
	t.Helper()
	if err := box.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
}
