package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	line := m.run(t, nil, "version")
	if line.status != 0 || !strings.HasPrefix(line.stdout, "ralph ") || strings.Count(line.stdout, "\n") != 1 || line.stderr != "" {
		t.Errorf("got %+v", line)
	}
	if flag := m.run(t, nil, "--version"); flag != line {
		t.Errorf("--version: %+v, version: %+v", flag, line)
	}
	var b compose.Build
	if err := json.Unmarshal([]byte(m.run(t, nil, "version", "--json").stdout), &b); err != nil || b != compose.New(compose.Host{}).Build() {
		t.Errorf("got %+v, %v", b, err)
	}
}

func TestConfigCommand(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/config.yaml", "gate:\n  - go vet ./...\n  - go test ./...\nagent-env: [KEY=sk-secret]\n")
	m.trust(t)
	columns := regexp.MustCompile(" +")
	all := m.run(t, nil, "config", "--parallel", "8")
	for _, want := range []string{
		"KEY VALUE FROM\n",
		"\ngate go vet ./..., go test ./... ROOT/repo/.ralph/config.yaml:1\n",
		"\nparallel 8 flag --parallel\n",
		"\nagent-env KEY=(hidden) ROOT/repo/.ralph/config.yaml:4\n",
		"\nmodel - default\n",
	} {
		if !strings.Contains(columns.ReplaceAllString(all.stdout, " "), want) {
			t.Errorf("no line %q in\n%s", want, all.stdout)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"config gate", "go vet ./...\ngo test ./...\n"},
		{"config idle-timeout", "10m\n"},
		{"config agent-env", "KEY=(hidden)\n"},
		{"config --json parallel", "{\n  \"key\": \"parallel\",\n  \"value\": 4,\n  \"source\": \"default\"\n}\n"},
	} {
		if got := m.run(t, nil, strings.Fields(c.args)...); got.stdout != c.want || got.status != 0 {
			t.Errorf("%s: got %+v, want %q", c.args, got, c.want)
		}
	}
	if got := m.run(t, nil, "config", "--json"); strings.Contains(got.stdout, "sk-secret") || !json.Valid([]byte(got.stdout)) {
		t.Errorf("got %s", got.stdout)
	}
}

func TestConfigElsewhere(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/config.yaml", "parallel: 7\n")
	outside := func(h *compose.Host) { h.Dir = m.home }
	if got := m.run(t, outside, "config", "parallel"); got.stdout != "4\n" || !strings.Contains(got.stderr, "only your own configuration is read: ROOT/home is not in a git repository") {
		t.Errorf("outside a repository: %+v", got)
	}
	dir := filepath.Join(m.home, "bare.git")
	if out, err := exec.CommandContext(t.Context(), "git", "init", "--quiet", "--bare", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	bare := func(h *compose.Host) { h.Dir = dir }
	if got := m.run(t, bare, "config", "parallel"); got.stdout != "4\n" || !strings.Contains(got.stderr, "is a bare repository") {
		t.Errorf("in a bare repository: %+v", got)
	}
	if got := m.run(t, bare, "work"); got.status != exit.Usage || strings.Contains(got.stderr, "--repo") {
		t.Errorf("in a bare repository: %+v", got)
	}
	if got := m.run(t, outside, "config", "parallel", "--repo", m.repo); got.stdout != "7\n" || got.stderr != "" {
		t.Errorf("--repo: %+v", got)
	}
	if got := m.run(t, outside, "config", "parallel", "--repo", "../repo"); got.stdout != "7\n" {
		t.Errorf("relative --repo: %+v", got)
	}
	if got := m.run(t, outside, "config", "parallel", "--repo", m.home); got.status != exit.Usage || got.stdout != "" {
		t.Errorf("--repo that is none: %+v", got)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	got := newMachine(t).run(t, func(h *compose.Host) { h.Env = append(h.Env, "RALPH_PARALEL=3") }, "config", "parallel")
	want := ran{stdout: "4\n", stderr: "ralph: warning: unknown variable RALPH_PARALEL; did you mean RALPH_PARALLEL?\n"}
	if got != want {
		t.Errorf("got %+v", got)
	}
	// The common prefix of all variables does not make a name similar to others.
	got = newMachine(t).run(t, func(h *compose.Host) { h.Env = append(h.Env, "RALPH_BOGUS=3") }, "config", "parallel")
	if want := "ralph: warning: unknown variable RALPH_BOGUS\n"; got.stderr != want {
		t.Errorf("got %q", got.stderr)
	}
}

// TestEveryHelp checks that each command has an example and a group, and prints its help on standard output.
func TestEveryHelp(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	var stdout, stderr bytes.Buffer
	root := newRoot(compose.New(m.host(&stdout, &stderr)))
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			continue // cobra's own
		}
		if c.Example == "" || c.GroupID == "" || c.Short == "" {
			t.Errorf("%s lacks an example, a group or a line of help", c.Name())
		}
		for _, args := range [][]string{{c.Name(), "--help"}, {"help", c.Name()}} {
			got := m.run(t, nil, args...)
			if got.status != 0 || got.stderr != "" || !strings.Contains(got.stdout, c.Example) {
				t.Errorf("%v: %+v", args, got)
			}
		}
	}
	if got := m.run(t, nil, "image"); !strings.Contains(got.stdout, "Usage:\n  ralph image [command]\n") || got.status != 0 {
		t.Errorf("no subcommand: %+v", got)
	}
	if got := m.run(t, nil); !strings.Contains(got.stdout, "Exit status:") || got.status != 0 {
		t.Errorf("no arguments: %+v", got)
	}
}

// TestExamplesNameTheirCommand checks that the examples in a command's help use that command, and no other name for it.
func TestExamplesNameTheirCommand(t *testing.T) {
	t.Parallel()
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		if c.Name() == "completion" { // cobra's own
			return
		}
		if !c.Hidden && !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s has the examples %q", c.CommandPath(), c.Example)
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(newRoot(compose.New(compose.Host{})))
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for _, c := range []struct{ args, want string }{
		{"config --agent ", "claude-code\ncodex\ncommand\n"},
		{"config --publish ", "auto\nauto-merge\nbranch\nmerge\npr\nnone\n"},
		{"init --sandbox ", "auto\nnative\ndocker\npodman\nsbx\nlandlock\nnone\n"},
		{"config paral", "parallel\nparallel-by-label\n"},
		{"help ver", "verify\nversion\n"},
		{"version --color ", "auto\nalways\nnever\n"},
	} {
		got := m.run(t, func(h *compose.Host) { h.Agents = threeAgents() }, append([]string{"__completeNoDesc"}, strings.Split(c.args, " ")...)...)
		list, _, _ := strings.Cut(got.stdout, ":")
		var matching strings.Builder // the shell filters by prefix
		for word := range strings.Lines(list) {
			if last := c.args[strings.LastIndex(c.args, " ")+1:]; strings.HasPrefix(word, last) {
				matching.WriteString(word)
			}
		}
		if matching.String() != c.want {
			t.Errorf("%s: got %q, want %q", c.args, matching.String(), c.want)
		}
	}
	if got := m.run(t, nil, "completion", "bash"); got.status != 0 || !strings.Contains(got.stdout, "__start_ralph") {
		t.Errorf("completion bash: status %d", got.status)
	}
}

func TestCompleteKeys(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/fix-login.md", "---\ntitle: Fix \"the login\"\n---\n")
	m.write(t, ".ralph/backlog/fix-done.md", "---\ntitle: Done\nstate: closed\n---\n")
	m.write(t, ".ralph/backlog/other.md", "---\ntitle: Other\n---\n")
	var stdout, stderr bytes.Buffer
	a := compose.New(m.host(&stdout, &stderr))
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	got, _ := a.CompleteKeys(cmd, nil, "fix")
	if diff := cmp.Diff([]string{"fix-login\tFix \"the login\""}, got); diff != "" {
		t.Error(diff)
	}
	if got, _ = a.CompleteKeys(cmd, []string{"fix-login"}, ""); len(got) != 1 {
		t.Errorf("what is typed is offered again: %q", got)
	}
	if got, _ = a.CompleteClosed(cmd, nil, ""); !slices.Equal(got, []string{"fix-done\tDone"}) {
		t.Errorf("of closed issues %q is offered", got)
	}
}

// fullDisk is an output that fails as on a full disk.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestUnwritableOutputIsAFailure(t *testing.T) {
	t.Parallel()
	got := newMachine(t).run(t, func(h *compose.Host) { h.Stdout = fullDisk{} }, "config")
	if want := (ran{status: 1, stderr: "ralph: write standard output: no space left on device\n"}); got != want {
		t.Errorf("got %+v", got)
	}
}

// TestSignals sends both requests to stop to this process.
func TestSignals(t *testing.T) { //nolint:paralleltest // signals are the whole process's
	ctx, interrupt, _, stop := watchSignals(t.Context())
	defer stop()
	send := func() {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	send()
	<-interrupt
	if ctx.Err() != nil {
		t.Error("the first request ends everything")
	}
	send()
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), exit.ErrKilled) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
}

// Ctrl-\ stops everything at once.
func TestQuit(t *testing.T) { //nolint:paralleltest // signals are the whole process's
	signal.Ignore(syscall.SIGQUIT) // otherwise the default action would end the tests
	defer signal.Reset(syscall.SIGQUIT)
	ctx, interrupt, _, stop := watchSignals(t.Context())
	defer stop()
	if signal.Ignored(syscall.SIGQUIT) {
		t.Fatal("it is not caught")
	}
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	<-interrupt
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), exit.ErrKilled) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
}

// A process under nohup ignores the end of its terminal; a service still reloads its configuration at SIGHUP.
func TestNohup(t *testing.T) { //nolint:paralleltest // signals are the whole process's
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset() // stop gives no signals back
	_, _, hangup, stop := watchSignals(t.Context())
	defer stop()
	if !signal.Ignored(syscall.SIGHUP) {
		t.Error("the end of the terminal is a request to stop")
	}
	again := hangup()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-again
}
