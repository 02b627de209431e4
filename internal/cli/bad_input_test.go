package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
)

// threeAgents are the agents in the expected lines, independent of the built-in ones.
func threeAgents() []agents.Agent {
	return []agents.Agent{agents.Claude{}, agents.Codex{}, agents.Command{}}
}

// TestBadInput checks the exact line on standard error and the exit status of mistyped command lines.
func TestBadInput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		args   []string
		env    string
		file   string // of the repository
		status int
		want   string
	}{
		{name: "command", args: []string{"confg"}, status: 2, want: `unknown command "confg"; did you mean config?`},
		{name: "command with flags", args: []string{"confg", "--parallel", "3"}, status: 2, want: `unknown command "confg"; did you mean config?`},
		{name: "no command near", args: []string{"frobnicate"}, status: 2, want: "unknown command \"frobnicate\"; `ralph help` lists the commands"},
		{name: "empty command", args: []string{""}, status: 2, want: "unknown command \"\"; `ralph help` lists the commands"},
		{name: "empty command before others", args: []string{"", "work"}, status: 2, want: "unknown command \"\"; `ralph help` lists the commands"},
		{name: "empty CONFIG", args: []string{"serve", ""}, status: 2, want: "the CONFIG of ralph serve is empty; name one, or remove it"},
		{name: "empty ADDRESS", args: []string{"top", ""}, status: 2, want: "the ADDRESS of ralph top is empty; name one, or remove it"},
		{name: "hostile command", args: []string{"\x1b[31m\"x"}, status: 2, want: "unknown command \"\\x1b[31m\\\"x\"; `ralph help` lists the commands"},
		{name: "subcommand", args: []string{"docker", "build-imag"}, status: 2, want: `unknown command "docker build-imag"; did you mean build-image?`},
		{name: "subcommand with a flag", args: []string{"podman", "bogus", "--no-cache"}, status: 2, want: "unknown command \"podman bogus\"; `ralph podman --help` lists the commands"},
		{name: "subcommand of image", args: []string{"image", "biuld"}, status: 2, want: `unknown command "image biuld"; did you mean build?`},
		{name: "subcommand of sandbox", args: []string{"sandbox", "bogus"}, status: 2, want: "unknown command \"sandbox bogus\"; `ralph sandbox --help` lists the commands"},
		{name: "flag of commands", args: []string{"sandbox", "--zzz"}, status: 2, want: "unknown flag --zzz; `ralph sandbox --help` lists the flags"},
		{name: "help subcommand", args: []string{"help", "sandbox", "chek"}, status: 2, want: `unknown command "sandbox chek"; did you mean check?`},
		{name: "help topic", args: []string{"help", "versoin"}, status: 2, want: `unknown command "versoin"; did you mean version?`},
		{name: "help subtopic", args: []string{"help", "version", "x"}, status: 2, want: "unknown command \"x\"; `ralph help` lists the commands"},
		{name: "shell", args: []string{"completion", "bsh"}, status: 2, want: `unknown shell "bsh"; did you mean bash?`},
		{name: "flag", args: []string{"config", "--paralel", "3"}, status: 2, want: `unknown flag --paralel; did you mean --parallel?`},
		{name: "global flag", args: []string{"version", "--quite"}, status: 2, want: `unknown flag --quite; did you mean --quiet?`},
		{name: "no flag near", args: []string{"version", "--zzz"}, status: 2, want: "unknown flag --zzz; `ralph version --help` lists the flags"},
		{name: "title with a dash", args: []string{"new", "- six"}, status: 2, want: "a text that begins with - follows --, as in: ralph new -- '- TEXT'"},
		{name: "short flag", args: []string{"version", "-z"}, status: 2, want: "unknown flag -z; `ralph version --help` lists the flags"},
		{name: "flag syntax", args: []string{"version", "--=x"}, status: 2, want: "bad flag syntax: --=x; `ralph version --help` lists the flags"},
		{name: "no value", args: []string{"config", "--agent"}, status: 2, want: `--agent needs a value`},
		{name: "number", args: []string{"config", "--parallel=x"}, status: 2, want: `--parallel: "x" is not a whole number`},
		{name: "number too small", args: []string{"config", "--parallel=0"}, status: 2, want: `--parallel: 0 is less than 1`},
		{name: "number too large", args: []string{"config", "--parallel=99999999999999999999"}, status: 2, want: `--parallel: 99999999999999999999 is not from 1 to 2147483647`},
		{name: "number of 33 bits", args: []string{"config", "--memory-mb=4294967296"}, status: 2, want: `--memory-mb: 4294967296 is not from 0 to 2147483647`},
		{name: "tokens of 65 bits", args: []string{"config"}, env: "RALPH_BUDGET_TOKENS=99999999999999999999", status: 2, want: `RALPH_BUDGET_TOKENS: 99999999999999999999 is not from 0 to 9223372036854775807`},
		{name: "number far too small", args: []string{"config", "--parallel=-99999999999999999999"}, status: 2, want: `--parallel: -99999999999999999999 is not from 1 to 2147483647`},
		{name: "amount too large", args: []string{"config"}, file: "budget-usd: 1e400\n", status: 2, want: `ROOT/repo/.ralph/config.yaml:1: budget-usd: 1e400 is not from 0 to 1000000000`},
		{name: "too many processors", args: []string{"config", "--cpus=1e300"}, status: 2, want: `--cpus: 1e300 is not from 0 to 1000000000`},
		{name: "duration too long", args: []string{"config", "--idle-timeout=1h9999999999h"}, status: 2, want: `--idle-timeout: 1h9999999999h is not from 1s to 2562047h47m16s`},
		{name: "iterations of a prompt", args: []string{"run", "--prompt=x", "--max-iterations=99999999999999999999"}, status: 2, want: `--max-iterations: 99999999999999999999 is not from -9223372036854775808 to 9223372036854775807`},
		{name: "too little memory", args: []string{"config", "--memory-mb=1"}, status: 2, want: `--memory-mb: 1 is too small; give 32 or more, or 0 for the default`},
		{name: "too little memory in the file", args: []string{"config"}, file: "memory-mb: 31\n", status: 2, want: `ROOT/repo/.ralph/config.yaml:1: memory-mb: 31 is too small; give 32 or more, or 0 for the default`},
		{name: "too few processors", args: []string{"config", "--cpus=0.001"}, status: 2, want: `--cpus: 0.001 is too small; give 0.1 or more, or 0 for the default`},
		{name: "too few processors in the file", args: []string{"config"}, file: "cpus: 0.09\n", status: 2, want: `ROOT/repo/.ralph/config.yaml:1: cpus: 0.09 is too small; give 0.1 or more, or 0 for the default`},
		{name: "too few processes", args: []string{"config", "--pids=63"}, status: 2, want: `--pids: 63 is too small; give 64 or more, or 0 for the default`},
		{name: "boolean", args: []string{"version", "--json=maybe"}, status: 2, want: `--json: "maybe" is neither true nor false`},
		{name: "duration", args: []string{"config", "--run-timeout=90"}, status: 2, want: `--run-timeout: "90" has no unit; write 90s or 90m`},
		{name: "short duration", args: []string{"config", "--idle-timeout", "5"}, status: 2, want: `--idle-timeout: "5" has no unit; write 5s or 5m`},
		{name: "duration in a variable", args: []string{"config"}, env: "RALPH_COMPLETION_TIMEOUT=5", status: 2, want: `RALPH_COMPLETION_TIMEOUT: "5" has no unit; write 5s or 5m`},
		{name: "agent", args: []string{"config", "--agent=cdex"}, status: 2, want: `--agent: "cdex" is not one of claude-code, codex, command; did you mean codex?`},
		{name: "sandbox", args: []string{"config", "--sandbox=nono"}, status: 2, want: `--sandbox: "nono" is not one of auto, native, docker, podman, sbx, landlock, none; did you mean none?`},
		{name: "agent command", args: []string{"config", "--agent-command", "a | b"}, status: 2, want: `--agent-command: '|' needs a shell; quote it, or write sh -c '…'`},
		{name: "reviewer", args: []string{"config", "--review=codex:"}, status: 2, want: `--review: "codex:" is not AGENT or AGENT:MODEL`},
		{name: "reviewer without its program", args: []string{"config", "--review=command"}, status: 2, want: `--review: review "command" needs its program: review-command: PROGRAM ARG…`},
		{name: "program of no reviewer", args: []string{"config", "--review-command", "x"}, status: 2, want: `--review-command: review-command needs review "command", not "" (default)`},
		{name: "colour", args: []string{"version", "--color=blue"}, status: 2, want: `--color: "blue" is not one of auto, always, never`},
		{name: "quiet and verbose", args: []string{"version", "-qv"}, status: 2, want: `--quiet and --verbose exclude each other; choose one`},
		{name: "argument", args: []string{"version", "x"}, status: 2, want: `ralph version takes no argument, not "x"`},
		{name: "two arguments", args: []string{"config", "a", "b"}, status: 2, want: `ralph config takes one KEY, not 2`},
		{name: "key", args: []string{"config", "paralel"}, status: 2, want: `unknown key "paralel"; did you mean parallel?`},
		{name: "variable", args: []string{"config"}, env: "RALPH_PARALLEL=x", status: 2, want: `RALPH_PARALLEL: "x" is not a whole number`},
		{name: "file", args: []string{"config"}, file: "labels: [a]\nparalel: 3\n", status: 2, want: `ROOT/repo/.ralph/config.yaml:2: unknown key "paralel"; did you mean parallel?`},
		{name: "repo does not exist", args: []string{"config", "--repo=nowhere"}, status: 2, want: `--repo: ROOT/repo/nowhere does not exist`},
		{name: "repo is a file", args: []string{"config", "--repo=file"}, status: 2, want: `--repo: ROOT/repo/file is not a folder`},
		{name: "cost by what is no group", args: []string{"cost", "--by=week"}, status: 2, want: `--by: "week" is not one of day, issue, agent, model, outcome`},
		{
			name: "cost since no time", args: []string{"cost", "--since=yesterday"}, status: 2,
			want: `--since: "yesterday" is neither a duration, such as 36h or 7d, nor a date, such as 2026-11-01`,
		},
		{name: "cost since before all", args: []string{"cost", "--since=99999999999d"}, status: 2, want: `--since: 99999999999d goes back before 1970`},
		{name: "limit of a label", args: []string{"config", "--parallel-by-label=a=99999999999999999999"}, status: 2, want: `--parallel-by-label: "a=99999999999999999999" has no whole number from 1 to 2147483647 after the equals sign`},
		{name: "remote", args: []string{"status", "--remote=nowhere"}, status: 2, want: `there is no remote "nowhere"; add it with: git remote add nowhere URL`},
		{name: "init without a terminal", args: []string{"init"}, status: 2, want: `no terminal to ask on; give --agent (claude-code, codex, or command with --agent-command 'PROGRAM ARG…') and --sandbox (auto, native, docker, podman, sbx, landlock, none), or --yes to accept all proposals`},
		{name: "init without sandbox", args: []string{"init", "--agent=codex"}, status: 2, want: `no terminal to ask on; give --sandbox (auto, native, docker, podman, sbx, landlock, none), or --yes to accept all proposals`},
		{
			name: "init without program", args: []string{"init", "--agent=command", "--sandbox=none"}, status: 2,
			want: `--agent command needs --agent-command 'PROGRAM ARG…'`,
		},
		{
			name: "init without a program to propose", args: []string{"init", "--yes", "--agent=command"}, status: 2,
			want: `--agent command needs --agent-command 'PROGRAM ARG…'`,
		},
		{
			name: "init with a program for another agent", args: []string{"init", "--agent=codex", "--agent-command=x"}, status: 2,
			want: `--agent-command needs --agent command, not codex`,
		},
		{
			name: "init again", args: []string{"init", "--agent=codex", "--sandbox=none"}, file: "labels: [a]\n", status: 2,
			want: `ROOT/repo/.ralph/config.yaml exists already; edit it, or move ROOT/repo/.ralph away to start anew`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.write(t, "file", "")
			if c.file != "" {
				m.write(t, ".ralph/config.yaml", c.file)
			}
			got := m.run(t, func(h *compose.Host) { h.Env, h.Agents = append(h.Env, c.env), threeAgents() }, c.args...)
			if diff := cmp.Diff(ran{status: c.status, stderr: "ralph: " + c.want + "\n"}, got, cmp.AllowUnexported(ran{})); diff != "" {
				t.Error(diff)
			}
			if _, err := os.Lstat(filepath.Join(m.repo, ".ralph")); c.file == "" && err == nil {
				t.Error("something was written")
			}
		})
	}
}

func TestErrorsAsJSON(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/config.yaml", "paralel: 3\n")
	want := ran{status: 2, stderr: `{"error":{"exit_status":2,"message":"ROOT/repo/.ralph/config.yaml:1: unknown key \"paralel\"; ` +
		`did you mean parallel?","problems":[{"where":"ROOT/repo/.ralph/config.yaml:1","message":"unknown key \"paralel\"; did you mean parallel?"}]}}` + "\n"}
	if diff := cmp.Diff(want, m.run(t, nil, "config", "--json"), cmp.AllowUnexported(ran{})); diff != "" {
		t.Error(diff)
	}
}
