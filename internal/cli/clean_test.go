package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// What is being worked is kept, and the exit status says that not all is gone.
func TestDiscardOfWhatIsWorked(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.write(t, ".ralph/backlog/one.md", "---\nlabels: [no-human]\n---\n# Add a file\n")
	m.commit(t)
	started, goOn := filepath.Join(m.root, "started"), filepath.Join(m.root, "go-on")
	if out, err := exec.CommandContext(t.Context(), "mkfifo", started, goOn).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program := m.program(t, "agent", "cat >/dev/null; echo >"+started+"; cat "+goOn+"\n")
	worked := make(chan ran)
	go func() {
		worked <- m.run(t, nil, "work", "--sandbox=none", "--commit-author=A <a@b.c>", "--skip-permissions", "--max-iterations=1", "--max-attempts=1", "--agent-command="+program+"/agent")
	}()
	pipe, err := os.OpenFile(started, os.O_RDWR, 0) // this waits for no other end
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	begun := make(chan error, 1)
	go func() {
		_, err := pipe.Read(make([]byte, 1))
		begun <- err
	}()
	select {
	case err := <-begun:
		if err != nil {
			t.Fatal(err)
		}
	case got := <-worked:
		t.Fatalf("no agent was started: %+v", got)
	}
	got := m.run(t, nil, "clean", "--discard", "one")
	if got.status != exit.Incomplete || !strings.Contains(got.stdout, "kept") || !strings.Contains(got.stderr, "1 of 1 not removed") {
		t.Errorf("%+v", got)
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-worked
	if got = m.run(t, nil, "clean", "--discard", "one"); got.status != exit.OK {
		t.Errorf("afterwards: %+v", got)
	}
}
