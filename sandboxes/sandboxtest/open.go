package sandboxtest

import (
	"bytes"
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
		if err := p.Check(s.boundedContext()); err != nil {
			s.Errorf("Check: %v", err)
		}
	},
	"open/isolation that is asked for is there or refused": func(s *suite) {
		p := s.provider(s.T)
		box, err := p.Open(s.boundedContext(), sandboxes.Spec{
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
		box, err := s.provider(s.T).Open(s.boundedContext(), sandboxes.Spec{
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
	"files/a worktree that may only be read": func(s *suite) {
		p := s.provider(s.T)
		if c := p.Capabilities(); !c.Isolated() || c.Files != sandboxes.Bind {
			s.Skip("the provider shows no folder of the host")
		}
		dir := s.options.Worktree(s.T)
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte("host\n"), 0o644); err != nil {
			s.Fatal(err)
		}
		box := openBox(s.boundedContext(), s.T, p, sandboxes.Spec{Run: runID(s.T), Worktree: dir, ReadOnly: true})
		var out bytes.Buffer
		_, err := box.Exec(s.boundedContext(), sandboxes.Command{
			Argv: []string{"sh", "-c", "cat file; (echo more >>file) 2>&- || echo kept; " +
				"(echo new >new) 2>&- || echo none; rm -f file 2>&-"},
			Stdout: &out,
		})
		if err != nil || out.String() != "host\nkept\nnone\n" {
			s.Errorf("%q, %v", out.String(), err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "file")); string(text) != "host\n" {
			s.Errorf("the file is %q, %v", text, err)
		}
	},
	"files/both sides see them": func(s *suite) {
		if s.copies() {
			copiedFiles(s)
			return
		}
		r := s.open()
		r.write("from host.txt", []byte("host\n"))
		if got := r.text(`cat "from host.txt"; printf inside >"wörk"; mkdir -p a/b; printf deep >a/b/c`); got != "host\n" {
			s.Errorf("inside sees %q", got)
		}
		if err := r.Close(s.boundedContext()); err != nil {
			s.Fatal(err)
		}
		for name, want := range map[string]string{"wörk": "inside", "a/b/c": "deep", "from host.txt": "host\n"} {
			if got, err := os.ReadFile(filepath.Join(r.host, name)); err != nil || string(got) != want {
				s.Errorf("%s on the host: %q, %v", name, got, err)
			}
		}
	},
}

// copiedFiles tests that commands see a copy of the host's files, and that Fetch copies files to the host.
func copiedFiles(s *suite) {
	host := s.options.Worktree(s.T)
	if err := os.WriteFile(filepath.Join(host, "from host.txt"), []byte("host\n"), 0o644); err != nil {
		s.Fatal(err)
	}
	r := s.openOn(host)
	if got := r.text(`cat "from host.txt"; printf inside >"wörk"; mkdir -p a/b; printf deep >a/b/c; printf changed >"from host.txt"`); got != "host\n" {
		s.Errorf("inside sees %q", got)
	}
	fetcher, ok := sandboxes.As[sandboxes.Fetcher](r.Sandbox)
	if !ok {
		s.Fatal("the sandbox is no Fetcher: files that it has never reach the host")
	}
	root, err := os.OpenRoot(s.TempDir())
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if err := fetcher.Fetch(s.boundedContext(), []string{"wörk", "a"}, root, sandboxes.FetchLimits{}); err != nil {
		s.Fatal(err)
	}
	for name, want := range map[string]string{"wörk": "inside", "a/b/c": "deep"} {
		if got, err := root.ReadFile(name); err != nil || string(got) != want {
			s.Errorf("%s on the host: %q, %v", name, got, err)
		}
	}
	if err := errors.Join(root.MkdirAll(".git/hooks", 0o755), root.Symlink(".git/hooks", "hooks")); err != nil {
		s.Fatal(err)
	}
	r.text(`mkdir hooks; echo : >hooks/pre-commit; chmod +x hooks/pre-commit`)
	var refused *sandboxes.RefusedError
	if err := fetcher.Fetch(s.boundedContext(), []string{"hooks/pre-commit"}, root, sandboxes.FetchLimits{}); !errors.As(err, &refused) {
		s.Errorf("a file below a link of the host: %v", err)
	}
	if _, err := root.Lstat(".git/hooks/pre-commit"); err == nil {
		s.Error("a link of the host led a file into its git directory")
	}
	if got, err := os.ReadFile(filepath.Join(host, "from host.txt")); err != nil || string(got) != "host\n" {
		s.Errorf("the host's own file: %q, %v", got, err)
	}
}

func closeNow(t *testing.T, box sandboxes.Sandbox) {
	t.Helper()
	if err := box.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
}
