package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

// A login that was refused at its last use is a warning, and so, with another hint, is an account without credit.
func TestDoctorNamesARefusedLogin(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "claude"), []byte("#!/bin/sh\necho 1.0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=x"}
	login := func(want ...string) {
		t.Helper()
		got := m.run(t, func(h *compose.Host) { h.Env = append(h.Env, env...) }, "doctor", "--sandbox=none", "--agent=claude-code")
		for _, text := range want {
			if !strings.Contains(got.stdout, text) {
				t.Errorf("it does not say %q:\n%s", text, got.stdout)
			}
		}
	}
	login("ok    login ")
	store, _ := journalIn(t, m.home, ".local", "state", "ralph", "repo-*")
	used := func(id string, at int, f *agents.Failure) {
		t.Helper()
		when := time.Date(2026, 11, 1, at, 0, 0, 0, time.UTC)
		r := journal.Record{
			Run:   journal.Run{ID: id, Kind: journal.KindIssue, Key: id, Agent: "claude-code", Started: when},
			State: journal.State{Stage: journal.StageEnd, Ended: when},
		}
		r.Facts.Iterations = []loop.Iteration{{Number: 1, Agent: "claude-code", Ended: when, Failure: f}}
		if err := store.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	used("a", 1, &agents.Failure{Class: agents.Auth, Message: "invalid key"})
	login("warn  login         claude-code, at its latest use: invalid key", "fix: run claude once and log in, or set ANTHROPIC_API_KEY to a valid key")
	used("b", 2, &agents.Failure{Class: agents.NoCredit, Message: "balance too low"})
	login("warn  login         claude-code, at its latest use: balance too low", "fix: "+agents.CreditHint)
	used("c", 3, nil)
	login("ok    login ")
}

// A missing token of the forge is one finding, however many checks need it.
func TestDoctorNamesAMissingTokenOnce(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	m.remote(t, "https://github.com/acme/widgets")
	got := m.run(t, nil, "doctor", "--sandbox=none", "--agent-command=true")
	if n := strings.Count(got.stdout, "no token"); n != 1 || !strings.Contains(got.stdout, "fail  token         https://github.com/acme/widgets: no token: set GITHUB_TOKEN or GH_TOKEN\n") {
		t.Errorf("%d times: %+v", n, got)
	}
}

// An agent's version is its standard output, without warnings on standard error. Only if the output is empty, standard error
// counts.
func TestDoctorTellsTheVersion(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"echo 'WARNING: no PATH' >&2; echo codex-cli 1.0\n": "ok    agent         codex: codex-cli 1.0\n",
		"echo codex-cli 1.0 >&2\n":                          "ok    agent         codex: codex-cli 1.0\n",
		"echo part; echo broken >&2; exit 3\n":              "fail  agent         codex --version: exit status 3: broken\n",
		"echo broken; exit 3\n":                             "fail  agent         codex --version: exit status 3: broken\n",
	} {
		m := newMachine(t)
		m.commit(t)
		bin := m.program(t, "codex", script)
		got := m.run(t, func(h *compose.Host) { h.Env = append(h.Env, "PATH="+bin+":"+os.Getenv("PATH")) }, "doctor", "--sandbox=none", "--agent=codex")
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%s: got %+v", script, got)
		}
	}
}
