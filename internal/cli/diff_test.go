package cli

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// TestDiffOfARunThatIsOn checks that `ralph diff` notes that the issue is being worked, and shows what was imported so far.
func TestDiffOfARunThatIsOn(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.commit(t)
	pipe := func(name string) *os.File {
		path := filepath.Join(m.root, name)
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	at, on := pipe("at"), pipe("on")
	agent := m.program(t, "agent", "echo $RALPH_ITERATION >"+at.Name()+"; read x <"+on.Name()+`
		[ $RALPH_ITERATION = 2 ] && echo "<promise>COMPLETE</promise>"
		echo new >> x; git add x; git -c user.name=a -c user.email=a@b commit -qm x`+"\n")
	ended := make(chan ran, 1)
	go func() {
		ended <- m.run(t, func(h *compose.Host) { h.Env = append(h.Env, "RALPH_COMMIT_AUTHOR=a <a@b>") },
			"work", "--sandbox=none", "--skip-permissions", "--agent-command="+filepath.Join(agent, "agent"), "--gate=true", "--publish=none")
		if _, err := at.WriteString("ended\n"); err != nil {
			t.Error(err)
		}
	}()
	said := bufio.NewScanner(at)
	for _, c := range []struct {
		at         string
		diff, said string
	}{
		{"1", "", "ralph: one is being worked, with no commits imported yet; follow it with: ralph logs -f one\n"},
		{"2", "+new\n", "one is being worked; this is what has been imported so far\n"},
		{"ended", "+new\n+new\n", ""},
	} {
		if !said.Scan() || said.Text() != c.at {
			t.Fatalf("the agent is at %q, want %s: %+v", said.Text(), c.at, <-ended)
		}
		got := m.run(t, nil, "diff", "one")
		if (got.status == exit.OK) != (c.diff != "") || !strings.HasSuffix(got.stdout, c.diff) ||
			strings.Count(got.stdout, "+new") != strings.Count(c.diff, "+new") || got.stderr != c.said {
			t.Errorf("at %s: %+v", c.at, got)
		}
		if got := m.run(t, nil, "tree", "one", filepath.Join(m.root, "tree"+c.at)); (got.status == exit.OK) != (c.diff != "") {
			t.Errorf("at %s: tree: %+v", c.at, got)
		}
		if _, err := on.WriteString("go\n"); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-ended; got.status != exit.OK {
		t.Errorf("%+v", got)
	}
}
