package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// TestUntrustedConfiguration attacks a user through a repository's file: nothing may run, be read or be sent before the user has
// accepted it.
func TestUntrustedConfiguration(t *testing.T) {
	t.Parallel()
	const key = "PRIVATE KEY OF THE USER"
	look := [][]string{{"work", "--dry-run"}, {"config"}, {"doctor"}, {"show", "one"}, {"logs", "one"}, {"status"}, {"clean"}}
	run := [][]string{{"work"}, {"run", "--prompt=x"}}
	for name, c := range map[string]struct {
		file     string // with the placeholders ROOT, MARK and URL
		commands [][]string
	}{
		"token-command":  {"tracker: gitlab\nproject: URL/a/b\ntoken-command: [touch, MARK]\n", append(look, run...)},
		"before":         {"before: [touch MARK]\nsandbox: none\nagent-command: 'true'\n", run[:1]},
		"agent-command":  {"sandbox: none\nagent-command: touch MARK\n", run},
		"sandbox exec":   {"sandbox: none\n", [][]string{{"sandbox", "exec", "--", "touch", "MARK"}, {"sandbox", "check"}}},
		"agent-upstream": {"sandbox: none\nagent-upstream: URL\n", run},
		"mounts":         {"mounts: ['host=ROOT/home,inside=/work']\n", append(run, []string{"sandbox", "exec", "--", "true"})},
		"prompt-file":    {"prompt-file: ROOT/home/id_ed25519\n", [][]string{{"prompt", "one"}}},
		"bearer token":   {"tracker: gitlab\nproject: URL/a/b\nforge-url: URL\ntoken-env: [AWS_SECRET]\n", look},
		"state-dir":      {"state-dir: .ralph/state\n", append(look, run...)},
		"image":          {"container-args: [--privileged]\n", [][]string{{"image", "build"}, {"sandbox", "login"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			var asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
			defer server.Close()
			mark := filepath.Join(m.root, "mark")
			fill := strings.NewReplacer("ROOT", m.root, "MARK", mark, "URL", server.URL).Replace
			m.write(t, ".ralph/config.yaml", fill(c.file))
			m.write(t, ".ralph/Dockerfile", "FROM scratch\n")
			m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
			m.commit(t)
			if err := os.WriteFile(filepath.Join(m.home, "id_ed25519"), []byte(key), 0o600); err != nil {
				t.Fatal(err)
			}
			looked := false
			for _, args := range c.commands {
				args = slices.Clone(args)
				for i := range args {
					args[i] = fill(args[i])
				}
				got := m.run(t, func(h *compose.Host) { h.Env = append(h.Env, "AWS_SECRET="+key) }, args...)
				line := strings.HasPrefix(got.stderr, "ralph: ROOT/repo/.ralph/config.yaml sets ") &&
					strings.Count(got.stderr, "\n") == 1 &&
					strings.HasSuffix(got.stderr, "with: ralph trust\n")
				if without := saysWithout(got); without {
					looked = true
				} else if got.status != exit.Usage || got.stdout != "" || !line {
					t.Errorf("%v: %+v", args, got)
				}
			}
			if _, err := os.Lstat(mark); err == nil {
				t.Error("the repository has run a program on the host")
			}
			if asked.Load() > 0 {
				t.Error("the repository's server was asked")
			}
			if entries, _ := os.ReadDir(m.home); len(entries) != 1 && !looked {
				t.Errorf("there is state of it: %v", entries)
			}
			if _, err := os.Lstat(filepath.Join(m.repo, ".ralph/state")); err == nil {
				t.Error("there is state where the repository wants it")
			}
		})
	}
}

// saysWithout reports that a command has left out the values that are not accepted, and has said so.
func saysWithout(r ran) bool {
	const what = "ROOT/repo/.ralph/config.yaml sets "
	warned := strings.HasPrefix(r.stderr, "ralph: warning: "+what) && strings.Contains(r.stderr, "; this command ignores it; read and accept it with: ralph trust\n")
	return warned || strings.Contains(strings.Join(strings.Fields(r.stdout), " "), "fail trust "+what) && strings.Contains(r.stdout, "fix: ralph trust\n")
}

// TestLooksWithoutTrust checks that commands that only look work as if the file set no guarded value.
func TestLooksWithoutTrust(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	const path, warning = ".ralph/config.yaml", "ralph: warning: ROOT/repo/.ralph/config.yaml has changed agent-command since you accepted it; " +
		"this command ignores it; read and accept it with: ralph trust\n"
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.write(t, ".ralph/.gitignore", "/state/\n")
	m.write(t, path, "state-dir: .ralph/state\nagent: command\nagent-command: [agent, one]\nagent-args: [x]\nreview: command\nreview-command: [r]\n")
	m.commit(t)
	m.trust(t)
	m.write(t, path, "state-dir: .ralph/state\nagent: command\nagent-command: [agent, two]\nagent-args: [x]\nreview: command\nreview-command: [r]\n")
	for line, want := range map[string]ran{
		"status":               {stdout: "No run yet. `ralph work --dry-run` shows what would be worked.\n", stderr: warning},
		"config agent-command": {stdout: "", stderr: warning},
		"stop one":             {status: 3, stderr: warning + "ralph: one is not being worked on this host; see `ralph status`\n"},
		"work -n": {status: 2, stderr: "ralph: ROOT/repo/.ralph/config.yaml has changed agent-command since you accepted it; " +
			"read and accept the change with: ralph trust\n"},
	} {
		if diff := cmp.Diff(want, m.run(t, nil, strings.Fields(line)...), cmp.AllowUnexported(ran{})); diff != "" {
			t.Errorf("%s: %s", line, diff)
		}
	}
	if _, err := os.Lstat(filepath.Join(m.repo, ".ralph/state")); err != nil {
		t.Errorf("what is accepted and unchanged does not count: %v", err)
	}
	if got := m.run(t, nil, "prompt", "one"); got.status != 0 || got.stderr != warning || !strings.Contains(got.stdout, "One") {
		t.Errorf("prompt: %+v", got)
	}
	got := m.run(t, nil, "doctor")
	text := strings.Join(strings.Fields(got.stdout), " ")
	if got.status != exit.Failed || !strings.Contains(text, "fail trust ROOT/repo/.ralph/config.yaml has changed agent-command since you accepted it") ||
		!strings.Contains(text, "fix: ralph trust ok repository") || strings.Contains(text, "two") || strings.Contains(got.stderr, "warning") {
		t.Errorf("doctor: %+v", got)
	}
}

// endsOnceItSpeaks interrupts a command at its first output on standard error; top would run forever.
func endsOnceItSpeaks(h *compose.Host) {
	interrupt := make(chan struct{})
	to, end := h.Stderr, sync.OnceFunc(func() { close(interrupt) })
	h.Interrupt, h.Stderr = interrupt, writerFunc(func(data []byte) (int, error) {
		defer end()
		return to.Write(data)
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(data []byte) (int, error) { return f(data) }

// TestEveryCommandAsksForTrust checks that commands that act refuse, and that commands that look warn. Only commands without a
// configuration do neither.
func TestEveryCommandAsksForTrust(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/config.yaml", "sandbox: none\n")
	m.commit(t)
	free := []string{"help", "version", "completion", "init", "trust", "fleet"} // fleet needs no repository
	looks := []string{"stop", "clean", "status", "top", "show", "cost", "diff", "tree", "open", "verify", "logs", "prompt", "config", "doctor"}
	args := map[string][]string{
		"top": {"--plain"}, "run": {"--prompt=x"}, "exec": {"--", "true"}, "build-image": {"--image=x"}, "remove-image": {"--image=x"}, "verify": {"x"},
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if slices.Contains(free, sub.Name()) && c.Name() == "ralph" || c.Name() == "docker" || c.Name() == "podman" || c.Name() == "projects" {
				continue // docker, podman and projects read no configuration
			}
			if sub.HasSubCommands() {
				walk(sub)
				continue
			}
			line := append(strings.Fields(sub.CommandPath())[1:], args[sub.Name()]...)
			if strings.HasPrefix(sub.Use, sub.Name()+" KEY") {
				line = append(line, "x")
			}
			got := m.run(t, endsOnceItSpeaks, line...)
			refuses := got.status == exit.Usage && got.stdout == "" && strings.Count(got.stderr, "\n") == 1 && strings.HasSuffix(got.stderr, "with: ralph trust\n")
			if warns := slices.Contains(looks, strings.Join(line[:1], "")); warns && !saysWithout(got) || !warns && !refuses {
				t.Errorf("%v: %+v", line, got)
			}
		}
	}
	walk(newRoot(compose.New(m.host(nil, nil))))
	for _, line := range [][]string{
		{"help", "work"}, {"version"}, {"completion", "bash"}, {"trust", "--hash"}, {"work", "--help"},
	} {
		if got := m.run(t, nil, line...); got.status != 0 {
			t.Errorf("%v: %+v", line, got)
		}
	}
}

func TestTrust(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	const path = ".ralph/config.yaml"
	m.write(t, path, "labels: [a]\nbefore: [\"make\\tdeps\"]\nagent-env: [KEY=one]\n")
	step := func(want ran, args ...string) {
		t.Helper()
		if diff := cmp.Diff(want, m.run(t, nil, args...), cmp.AllowUnexported(ran{})); diff != "" {
			t.Errorf("%v: %s", args, diff)
		}
	}
	hash := strings.TrimSpace(m.run(t, nil, "trust", "--hash").stdout)
	if len(hash) != 64 {
		t.Fatalf("hash %q", hash)
	}
	const list = "  agent-env  [\"KEY=(hidden)\"]\n    before     [\"make\\tdeps\"]\nHash: "
	step(ran{
		status: 2, stdout: "ROOT/repo/.ralph/config.yaml sets values that need your consent:\n  " + list + hash + "\n",
		stderr: "ralph: no terminal to ask on; if you have read this and agree, accept it with: ralph trust --yes\n",
	}, "trust")
	step(ran{
		stdout: "ROOT/repo/.ralph/config.yaml sets values that need your consent:\n  " + list + hash + "\n",
		stderr: "accepted; to withdraw: ralph trust --revoke\n",
	}, "trust", "--yes")
	step(ran{stdout: "Accepted values of ROOT/repo/.ralph/config.yaml:\n  " + list + hash + "\n"}, "trust")
	step(ran{stdout: "a\n"}, "config", "labels")

	// Other keys may change freely. A changed guarded key is shown with the accepted value.
	m.write(t, path, "labels: [b]\nbefore: [\"make\\tdeps\"]\nagent-env: [KEY=one]\n")
	step(ran{stdout: "b\n"}, "config", "labels")
	m.write(t, path, "labels: [b]\nbefore: [\"make\\tpwn\"]\nagent-env: [KEY=two]\nsandbox: none\n")
	const warning = "ralph: warning: ROOT/repo/.ralph/config.yaml has changed agent-env, before, sandbox since you accepted it; " +
		"this command ignores it; read and accept it with: ralph trust\n"
	step(ran{stdout: "b\n", stderr: warning}, "config", "labels")
	step(ran{stdout: "auto\n", stderr: warning}, "config", "sandbox")
	step(ran{
		status: 2,
		stderr: "ralph: ROOT/repo/.ralph/config.yaml has changed agent-env, before, sandbox since you accepted it; " +
			"read and accept the change with: ralph trust\n",
	}, "work", "-n")
	got := m.run(t, nil, "trust")
	const diff = "ROOT/repo/.ralph/config.yaml has changed since you accepted it:\n" +
		"  - agent-env  [\"KEY=(hidden)\"]\n  + agent-env  [\"KEY=(hidden)\"] (another value)\n" +
		"  - before     [\"make\\tdeps\"]\n  + before     [\"make\\tpwn\"]\n  + sandbox    none\nHash: "
	if got.status != 2 || !strings.HasPrefix(got.stdout, diff) || strings.Contains(got.stdout, hash) {
		t.Errorf("got %+v", got)
	}

	// Consent is for one checkout only, and can be revoked.
	other := newMachine(t)
	other.home = m.home
	other.write(t, path, "before: [\"make\\tdeps\"]\nagent-env: [KEY=one]\n")
	if got := other.run(t, nil, "config", "labels"); !saysWithout(got) {
		t.Errorf("another repository: %+v", got)
	}
	env := func(h *compose.Host) { h.Env = append(h.Env, "RALPH_TRUST="+hash) }
	if got := other.run(t, env, "config", "labels"); got.stdout != "no-human\n" || got.stderr != "" {
		t.Errorf("its hash: %+v", got)
	}
	if got := m.run(t, env, "config", "labels"); !strings.HasPrefix(got.stderr, "ralph: warning: ") {
		t.Errorf("the hash of other values: %+v", got)
	}
	m.write(t, path, "before: [\"make\\tdeps\"]\nagent-env: [KEY=one]\n")
	step(ran{stdout: "no-human\n"}, "config", "labels")
	step(ran{stderr: "withdrawn: no values of ROOT/repo/.ralph/config.yaml are accepted any more\n"}, "trust", "--revoke")
	step(ran{stderr: "no values of ROOT/repo/.ralph/config.yaml were accepted\n"}, "trust", "--revoke")
	if got := m.run(t, nil, "config", "labels"); !saysWithout(got) {
		t.Errorf("revoked: %+v", got)
	}
}

// TestOwnTrackerStays checks that a repository cannot replace the tracker that the user has configured, and that every
// command names both values.
func TestOwnTrackerStays(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.own(t, "tracker: github\nsetup: [mine]\n")
	m.write(t, ".ralph/config.yaml", "tracker: local\nlocal: {dir: docs/todo}\nsetup: [theirs]\nreview-label: ship-it\n")
	m.write(t, "docs/todo/1.md", "---\ntitle: Evil\nauthor: ada\nlabels: [no-human]\n---\n")
	m.commit(t)
	const what = "ROOT/repo/.ralph/config.yaml sets review-label, setup, tracker without your consent; "
	refused := ran{status: exit.Usage, stderr: "ralph: " + what + "read and accept it with: ralph trust\n"}
	if got := m.run(t, nil, "work", "--sandbox=none", "--agent-command=true"); got != refused {
		t.Errorf("work: %+v", got)
	}
	without := ran{stdout: "github\n", stderr: "ralph: warning: " + what + "this command ignores it; read and accept it with: ralph trust\n"}
	if got := m.run(t, nil, "config", "tracker"); got != without {
		t.Errorf("config: %+v", got)
	}
	if got := m.run(t, nil, "doctor"); !saysWithout(got) || strings.Contains(got.stdout, "todo") {
		t.Errorf("doctor: %+v", got)
	}
	got := m.run(t, nil, "trust", "--yes")
	const list = "    review-label  ship-it\n    setup         [theirs], but your own file says [mine]\n    tracker       local, but your own file says github\n"
	if got.status != 0 || !strings.Contains(got.stdout, list) {
		t.Errorf("trust: %+v", got)
	}
	if got := m.run(t, nil, "work", "--dry-run", "--sandbox=none", "--agent-command=true"); got.status != 0 || !strings.Contains(got.stdout, "Evil") {
		t.Errorf("work: %+v", got)
	}
}

// TestTrustAsks checks that only the answer yes gives consent.
func TestTrustAsks(t *testing.T) {
	t.Parallel()
	for answer, status := range map[string]int{"\n": 1, "no\n": 1, "": 130, "yes\n": 0} {
		m := newMachine(t)
		m.write(t, ".ralph/config.yaml", "sandbox: none\n")
		got := m.run(t, func(h *compose.Host) { h.Interactive, h.Stdin = true, strings.NewReader(answer) }, "trust")
		if got.status != status || !strings.Contains(got.stdout, "\n    sandbox  none\n") {
			t.Errorf("%q: %+v", answer, got)
		}
		if got := m.run(t, nil, "config", "sandbox"); (got.stdout == "none\n") != (status == 0) {
			t.Errorf("after %q: %+v", answer, got)
		}
	}
}

func TestNothingToTrust(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	want := ran{stderr: "nothing to accept: ROOT/repo/.ralph/config.yaml sets nothing that needs your consent\n"}
	for _, args := range [][]string{{"trust"}, {"trust", "--yes"}, {"trust", "--hash"}} {
		if got := m.run(t, nil, args...); got != want {
			t.Errorf("no file, %v: %+v", args, got)
		}
	}
	m.write(t, ".ralph/config.yaml", "labels: [a]\nsandbox: native\n")
	if got := m.run(t, nil, "trust"); got != want {
		t.Errorf("ordinary keys: %+v", got)
	}
	m.write(t, ".ralph/config.yaml", "sandbox: nono\n")
	const mistake = "config.yaml:1: sandbox: \"nono\" is not one of"
	if got := m.run(t, nil, "trust", "--yes"); got.status != 2 || !strings.Contains(got.stderr, mistake) {
		t.Errorf("a mistake: %+v", got)
	}
}
