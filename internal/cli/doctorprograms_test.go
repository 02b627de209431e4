package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/hint"
)

// TestDoctorSeesSubmodules checks the warning about submodules, whose folders are empty unless a command fetches them.
func TestDoctorSeesSubmodules(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\n---\n")
	m.write(t, ".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ../sub.git\n")
	m.commit(t)
	args := []string{"doctor", "--sandbox=none", "--agent-command=true"}
	if got := m.run(t, nil, args...); !strings.Contains(got.stdout, "warn  submodules    their folders are empty in worktrees") {
		t.Errorf("got %+v", got)
	}
	for _, by := range []string{"--setup", "--before"} {
		if got := m.run(t, nil, append(args, by, "git submodule update --init")...); !strings.Contains(got.stdout, "ok    submodules") {
			t.Errorf("%s: %+v", by, got)
		}
	}
}

// TestWorkNamesSubmodules checks that a gate that fails or cannot run on the base gives one warning in doctor's words.
func TestWorkNamesSubmodules(t *testing.T) {
	t.Parallel()
	for _, gate := range []string{"cat sub/check", "./sub/check"} {
		m := newMachine(t)
		m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
		m.write(t, ".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ../sub.git\n")
		m.commit(t)
		args := []string{"work", "--sandbox=none", "--agent-command=false", "--commit-author=A <a@b.c>", "--gate", gate}
		const want = "one  warning  submodules: their folders are empty in worktrees: neither setup nor before fetches them; add \"git submodule"
		if got := m.run(t, nil, args...); strings.Count(got.stderr, want) != 1 {
			t.Errorf("%s: %+v", gate, got)
		}
	}
}

// TestDoctorSeesTools checks for programs of setup and gate that are missing or in folders that the sandbox does not show,
// and for hosts that they need.
func TestDoctorSeesTools(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\n---\n")
	m.write(t, "go.mod", "module x\n")
	m.write(t, "go.sum", "x\n")
	m.commit(t)
	bin := t.TempDir()
	script := "#!/bin/sh\n[ \"$2\" = GOPROXY ] && echo https://goproxy.invalid,http://127.0.0.1:8081\n"
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	path := func(h *compose.Host) { h.Env = append(slices.Clone(h.Env), "PATH="+bin+":/usr/bin:/bin") }
	args := []string{"doctor", "--sandbox=native", "--agent-command=true", "--setup", "go mod download", "--gate", "no-such-program --all"}
	lines := []string{
		"warn  tools         no-such-program is not in PATH, but setup or gate needs it",
		"sandbox-show: [\"" + bin + "\"] in your configuration",
		"warn  network       go fetches from goproxy.invalid, which runs may not reach",
		"--allow goproxy.invalid, or allow: [goproxy.invalid] in your configuration",
		"--allow-private 127.0.0.1:8081",
	}
	if got := m.run(t, path, "doctor", "--sandbox=none", "--agent-command=true", "--gate", "no-such-program --all"); got.status != exit.Failed ||
		!strings.Contains(got.stdout, "fail  tools         no-such-program is not in PATH") {
		t.Errorf("without a setup that may install it: %+v", got)
	}
	got := m.run(t, path, args...)
	for _, line := range lines {
		if !strings.Contains(got.stdout, line) {
			t.Errorf("no %q in:\n%s", line, got.stdout)
		}
	}
	m.write(t, ".ralph/config.yaml", "allow: [goproxy.invalid]\n")
	if got := m.run(t, path, args...); !strings.Contains(got.stdout, "fix: ralph trust, if the repository's allow has the host; else --allow goproxy.invalid, or") {
		t.Errorf("not accepted yet: %+v", got)
	}
	m.write(t, ".ralph/config.yaml", "")
	got = m.run(t, path, append(args, "--sandbox-show", bin, "--allow", "*.goproxy.invalid", "--allow", "goproxy.invalid", "--allow-private", "127.0.0.1:8081")...)
	for _, line := range lines[1:] {
		if strings.Contains(got.stdout, line) {
			t.Errorf("%q still in:\n%s", line, got.stdout)
		}
	}
}

// TestDoctorSeesFilesOfTheAgentCommand checks the warning about files that the sandbox does not show.
func TestDoctorSeesFilesOfTheAgentCommand(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\n---\n")
	m.commit(t)
	agent := m.program(t, "agent", "true\n")
	script := filepath.Join(agent, "agent")
	args := []string{"doctor", "--agent-command=sh " + script + " /etc/passwd /no/such/file"}
	const shown = "ok    agent         command sh ROOT"
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--sandbox=native"}, ": the sandbox does not show " + script + "\n                    fix: sandbox-show: [\"" + script + "\"] in your configuration\n"},
		{[]string{"--sandbox=none"}, shown},
		{[]string{"--sandbox=native", "--sandbox-show=" + agent}, shown},
		{[]string{"--sandbox=native", "--mount=host=" + agent}, shown},
	} {
		if got := m.run(t, nil, append(args, c.flags...)...); !strings.Contains(got.stdout, strings.ReplaceAll(c.want, m.root, "ROOT")) {
			t.Errorf("%v: no %q in %+v", c.flags, c.want, got)
		}
	}
	got := m.run(t, nil, "doctor", "--sandbox=none", "--agent-command=/no/such/agent")
	if !strings.Contains(got.stdout, "fix: install it where the agent runs, or choose another") || strings.Contains(got.stdout, "whole path") {
		t.Errorf("a whole path: %+v", got)
	}
}

// TestDoctorTrustsTheImage checks that doctor, like `ralph work`, accepts an agent that may be in the image only.
func TestDoctorTrustsTheImage(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\n---\n")
	m.commit(t)
	for _, flag := range []string{"--agent=codex", "--agent-command=/opt/agent --quiet"} {
		got := m.run(t, func(h *compose.Host) { h.Env = []string{"HOME=" + m.home, "PATH=/usr/bin:/bin"} }, "doctor", "--sandbox=docker", flag)
		if !strings.Contains(got.stdout, "is not on this host; it must be in the sandbox\n") || strings.Contains(got.stdout, "fail  agent") {
			t.Errorf("%s: %+v", flag, got)
		}
	}
}

// TestServiceNamesSubmodules checks that a service warns for each project.
func TestServiceNamesSubmodules(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.write(t, ".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ../sub.git\n")
	m.commit(t)
	file := filepath.Join(m.root, "serve.yaml")
	text := "projects:\n  - repo: " + m.repo + "\n    name: shop\n    sandbox: none\n    agent-command: 'false'\n    gate: cat sub/check\n    commit-author: A <a@b.c>\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	errs, interrupt := newTranscript(), make(chan struct{})
	h := m.host(&out, &out)
	h.Stderr, h.Interrupt = errs, interrupt
	status := make(chan int, 1)
	go func() { status <- Run(t.Context(), []string{"serve", "--listen=none", file}, h) }()
	errs.until(t, "shop/one  warning  submodules: "+hint.EmptySubmodules)
	close(interrupt)
	if got := <-status; got != 0 {
		t.Errorf("status %d\n%s", got, errs.until(t, ""))
	}
}

// TestDoctorSeesMissingLocks checks the warning about lock files that runs would create, unless git ignores them.
func TestDoctorSeesMissingLocks(t *testing.T) {
	t.Parallel()
	const want = "no api/composer.lock: each setup or gate creates one, and the agent may commit it"
	for _, c := range []struct {
		file, text string
		told       bool
	}{{"README", "x\n", true}, {".gitignore", "composer.lock\n", false}, {"api/composer.lock", "{}\n", false}} {
		m := newMachine(t)
		m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\n---\n")
		m.write(t, "api/composer.json", "{}\n")
		m.write(t, c.file, c.text)
		m.commit(t)
		got := m.run(t, nil, "doctor", "--sandbox=none", "--agent-command=true", "--setup=true")
		if strings.Contains(got.stdout, want) != c.told || strings.Contains(got.stdout, "fix: (cd api && composer install), and commit it; or add it to .gitignore") != c.told {
			t.Errorf("with %s: %s", c.file, got.stdout)
		}
	}
}
