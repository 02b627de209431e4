package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// TestSameWordsForACause checks that all commands report a missing agent in the same words and with the same hint.
func TestSameWordsForACause(t *testing.T) {
	t.Parallel()
	bin := t.TempDir() // everything but the agents
	for _, dir := range []string{"/usr/bin", "/bin"} {
		programs, _ := filepath.Glob(dir + "/*")
		for _, p := range programs {
			if name := filepath.Base(p); name != "codex" && name != "claude" {
				_ = os.Symlink(p, filepath.Join(bin, name)) // of equal names the first stays
			}
		}
	}
	for name, c := range map[string]struct {
		sandbox, cause, fix string
		codex               bool
	}{
		"program": {"none", "codex: not found in PATH", "install it where the agent runs, or choose another with --agent or --agent-command", false},
		"login":   {"native", "agent codex: no login in ROOT/home/.codex/auth.json", "run codex login, or set OPENAI_API_KEY to a valid key", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			path := "PATH=" + bin
			if c.codex {
				path = "PATH=" + m.program(t, "codex", "echo 1\n") + ":" + bin
			}
			with := func(h *compose.Host) { h.Env = []string{"HOME=" + m.home, path, "GIT_CONFIG_NOSYSTEM=1"} }
			m.write(t, "README", "x\n")
			m.commit(t)
			agent := []string{"--agent=codex", "--sandbox=" + c.sandbox}
			got := m.run(t, with, append([]string{"init"}, agent...)...)
			if got.status != 0 || !strings.Contains(got.stdout, c.cause+"; "+c.fix+".\n") {
				t.Errorf("init: %+v", got)
			}
			m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\nDo it.\n")
			agent = append(agent, "--commit-author=A <a@b.c>")
			if got := m.run(t, with, append([]string{"work", "-n"}, agent...)...); !c.codex && !strings.Contains(got.stderr, c.cause+"; "+c.fix) || got.status != 0 {
				t.Errorf("work -n: %+v", got)
			}
			elsewhere := append([]string{"work", "-n", "--agent-env=PATH=/opt/agents"}, agent...) // the agent may be there
			if got := m.run(t, with, elsewhere...); strings.Contains(got.stderr, "not found") || got.status != 0 {
				t.Errorf("work -n with a PATH of the agent's own: %+v", got)
			}
			for _, args := range [][]string{{"work", "--skip-permissions"}, {"run", "--prompt=hi", "--skip-permissions"}} {
				got := m.run(t, with, append(args, agent...)...)
				if got.status != exit.Parked || !strings.Contains(got.stderr, c.cause+"; "+c.fix) || strings.Contains(got.stderr, "sandbox native") {
					t.Errorf("%s: %+v", args[0], got)
				}
			}
			got = m.run(t, with, append([]string{"doctor"}, agent...)...)
			if got.status != 1 || !strings.Contains(got.stdout, "fail  "+name) && !strings.Contains(got.stdout, "fail  agent") ||
				!strings.Contains(got.stdout, c.cause+"\n                    fix: "+c.fix+"\n") {
				t.Errorf("doctor: %+v", got)
			}
		})
	}
}

// TestWhyAnAgentDoesNotStartIsToldOnce checks that the reason appears once, with the path and without the name of a class.
func TestWhyAnAgentDoesNotStartIsToldOnce(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.commit(t)
	args := []string{"work", "one", "--sandbox=none", "--agent-command=sub/agent", "--setup=true", "--skip-permissions", "--commit-author=A <a@b.c>"}
	got := m.run(t, nil, args...)
	const why = "iteration 1: agent command: start ROOT/repo/sub/agent: file does not exist\n"
	const last = "ralph: agent command is unavailable, see above\nralph: install it where the agent runs, or choose another with --agent or --agent-command\n"
	if got.status != exit.Parked || strings.Count(got.stderr, "sub/agent") != 1 || !strings.Contains(got.stderr, why) || !strings.HasSuffix(got.stderr, last) {
		t.Errorf("work: %+v", got)
	}
	if got := m.run(t, nil, append(args, "--quiet")...); !strings.Contains(got.stderr, "agent command is unavailable: iteration 1: agent command: start ROOT/repo/sub/agent: file does not exist\nralph: install it where") {
		t.Errorf("work --quiet: %+v", got)
	}
}
