package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/pool/journal"
)

// What belongs to an issue that is being worked is kept, and the exit status says that not everything was removed.
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
	program := m.program(t, "agent", "cat >/dev/null; echo x >new; echo >"+started+"; cat "+goOn+"\n")
	worked := make(chan ran)
	go func() {
		worked <- m.run(t, nil, "work", "--sandbox=none", "--commit-author=A <a@b.c>", "--skip-permissions", "--max-iterations=1", "--max-attempts=1", "--agent-command="+program+"/agent")
	}()
	pipe, err := os.OpenFile(started, os.O_RDWR, 0) // does not wait for a writer
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

// A person can end a run that no process works on any more, whatever keeps it from its end.
func TestEndUnfinishedRun(t *testing.T) {
	t.Parallel()
	for name, command := range map[string][]string{"discard": {"clean", "--discard", "one"}, "fresh": {"retry", "--fresh", "one"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.write(t, ".gitignore", ".ralph\n")
			m.write(t, ".ralph/backlog/one.md", "---\nlabels: [no-human]\n---\n# Add a file\n")
			m.commit(t)
			bare := filepath.Join(m.root, "bare.git")
			hook := filepath.Join(bare, "hooks", "pre-receive")
			for _, argv := range [][]string{{"init", "-q", "--bare", bare}, {"-C", m.repo, "remote", "add", "origin", bare}} {
				if out, err := exec.CommandContext(t.Context(), "git", argv...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			if err := os.WriteFile(hook, []byte("#!/bin/sh\n! grep -q refs/heads/ralph/\n"), 0o755); err != nil { //nolint:gosec // git runs it
				t.Fatal(err)
			}
			program := m.program(t, "agent", "cat >/dev/null; echo x >>file; git add file; git commit -qm work; echo '<promise>COMPLETE</promise>'\n")
			work := []string{"work", "--sandbox=none", "--commit-author=A <a@b.c>", "--skip-permissions", "--max-iterations=1", "--agent-command=" + program + "/agent"}
			m.run(t, nil, work...)
			if got := m.run(t, nil, "clean", "--dry-run"); !strings.Contains(got.stdout, "not finished") {
				t.Fatalf("%+v", got)
			}
			if got := m.run(t, nil, "stop", "one"); !strings.Contains(got.stderr, "`ralph retry --fresh one` ends it") {
				t.Errorf("%+v", got)
			}
			if got := m.run(t, nil, command...); got.status != exit.OK {
				t.Errorf("%+v", got)
			}
			store, _ := journalIn(t, m.home, ".local", "state", "ralph", "*")
			runs, err := store.Find(t.Context(), journal.Query{Open: true})
			if err != nil || len(runs) > 0 {
				t.Errorf("open: %+v, %v", runs, err)
			}
			if err := os.Remove(hook); err != nil {
				t.Fatal(err)
			}
			if got := m.run(t, nil, work...); got.status != exit.OK {
				t.Errorf("worked again: %+v", got)
			}
			if runs, err = store.Find(t.Context(), journal.Query{}); err != nil || len(runs) != 2 || runs[0].Commits != 1 || runs[1].Commits != 1 {
				t.Errorf("%d runs, %v", len(runs), err)
			}
		})
	}
}

// The record of a sandbox that was not closed is kept until the sandbox has ended, because nothing else leads to it.
func TestCleanEndsSandboxesThatWereNotClosed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	run := unclosedRun(t, m)
	calls, away := filepath.Join(m.root, "calls"), filepath.Join(m.root, "away")
	if err := os.WriteFile(away, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bin := m.program(t, "docker", "echo \"$@\" >>"+calls+"; if test -e "+away+"; then echo 'Cannot connect to the Docker daemon' >&2; exit 1; fi; "+
		"case $1 in ps) echo box;; esac\n")
	path := func(h *compose.Host) { h.Env = append(h.Env, "PATH="+bin+":"+os.Getenv("PATH")) }
	got := m.run(t, path, "clean")
	if !strings.Contains(got.stdout, "its sandbox may still run: ") || !strings.Contains(got.stdout, "Cannot connect to the Docker daemon; `ralph clean` removes it once docker answers") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(run.Tree); err != nil {
		t.Error(err)
	}
	if err := os.Remove(away); err != nil {
		t.Fatal(err)
	}
	got = m.run(t, path, "clean")
	if _, err := os.Stat(run.Tree); !os.IsNotExist(err) || !strings.Contains(got.stdout, "removed") {
		t.Errorf("%+v, %v", got, err)
	}
	if text, err := os.ReadFile(calls); err != nil || !strings.Contains(string(text), "rm --force") || !strings.Contains(string(text), " box\n") {
		t.Errorf("%s, %v", text, err)
	}
}

// unclosedRun returns the record of a run in docker whose worktree is kept, and whose sandbox was not closed.
func unclosedRun(t *testing.T, m machine) journal.Record {
	t.Helper()
	m.write(t, "README", "x\n")
	m.commit(t)
	if got := m.run(t, nil, "run", "--prompt=hi", "--sandbox=none", "--branch-strategy=branch", "--branch=topic", "--commit-author=A <a@b.c>",
		"--skip-permissions", "--agent-command=true", "--max-iterations=1"); got.status != exit.OK {
		t.Fatalf("%+v", got)
	}
	store, _ := journalIn(t, m.home, ".local", "state", "ralph", "*")
	runs, err := store.Find(t.Context(), journal.Query{})
	if err != nil || len(runs) != 1 {
		t.Fatalf("%+v, %v", runs, err)
	}
	runs[0].Sandbox, runs[0].SandboxMayRun = "docker", true
	if err := store.Save(t.Context(), runs[0]); err != nil {
		t.Fatal(err)
	}
	return runs[0]
}

// An engine that is not in PATH, as under cron, may still run a sandbox.
func TestCleanWithoutTheEngine(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	run := unclosedRun(t, m)
	path := func(h *compose.Host) { h.Env = append(h.Env, "PATH="+t.TempDir()) }
	got := m.run(t, path, "clean")
	if want := "its sandbox may still run: docker is not in PATH; type `ralph clean` with docker in PATH, or `ralph clean --discard branch-topic` without"; !strings.Contains(got.stdout, want) || !strings.Contains(got.stdout, "kept") {
		t.Errorf("%+v; want %q", got, want)
	}
	if _, err := os.Stat(run.Tree); err != nil {
		t.Fatal(err)
	}
	got = m.run(t, path, "clean", "--discard", "branch-topic")
	if _, err := os.Stat(run.Tree); !os.IsNotExist(err) || got.status != exit.OK {
		t.Errorf("%+v, %v", got, err)
	}
}

// JSON without results is an empty list.
func TestCleanPrintsAList(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	for _, args := range [][]string{{"clean"}, {"clean", "--dry-run"}, {"clean", "--repair"}} {
		if got := m.run(t, nil, append(args, "--json")...); got.stdout != "[]\n" {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
