package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/internal/cli/config/keys"
)

// TestBadFile checks the exact text of every problem in a file. "F" stands for the file.
func TestBadFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, want string }{
		{"unknown key", "labels: [x]\nparalel: 3\n", `F:2: unknown key "paralel"; did you mean parallel?`},
		{"unknown key, nothing near", "zzz: 3\n", "F:1: unknown key \"zzz\"; `ralph config` lists the keys"},
		{"unknown nested key", "local:\n  dirr: x\n", `F:2: unknown key "local.dirr"; did you mean local.dir?`},
		{"case", "Parallel: 3\n", `F:1: unknown key "Parallel"; did you mean parallel?`},
		{"underscore", "max_iterations: 3\n", `F:1: unknown key "max_iterations"; did you mean max-iterations?`},
		{"twice", "parallel: 3\nlimit: 1\nparallel: 4\n", `F:3: parallel is set twice; first on line 1`},
		{"nested twice", "local:\n  dir: a\n  dir: b\n", `F:3: local.dir is set twice; first on line 2`},
		{"not a number", "# x\n\nparallel: many\n", `F:3: parallel: "many" is not a whole number`},
		{"a fraction", "parallel: 1.5\n", `F:1: parallel: "1.5" is not a whole number`},
		{"too small", "parallel: 0\n", `F:1: parallel: 0 is less than 1`},
		{"too large", "parallel: 4294967296\n", `F:1: parallel: 4294967296 is not from 1 to 2147483647`},
		{"no unit", "idle-timeout: 600\n", `F:1: idle-timeout: "600" has no unit; write 600s or 600m`},
		{"no duration", "idle-timeout: soon\n", `F:1: idle-timeout: "soon" is not a duration such as 90s or 1h30m`},
		{"short duration", "idle-timeout: 1ms\n", `F:1: idle-timeout: 1ms is less than 1s`},
		{"negative", "retry-backoff: -1s\n", `F:1: retry-backoff: -1s is less than 0s`},
		{"no boolean", "skip-permissions: yes\n", `F:1: skip-permissions: "yes" is neither true nor false`},
		{"no amount", "budget-usd: .nan\n", `F:1: budget-usd: ".nan" is not a number`},
		{"choice", "publish: brnch\n", `F:1: publish: "brnch" is not one of auto, auto-merge, branch, merge, pr, none; did you mean branch?`},
		{"registered choice", "agent: cdex\n", `F:1: agent: "cdex" is not one of claude-code, codex, command; did you mean codex?`},
		{"reviewer that is none", "# x\nreview: codx\n", `F:2: review: "codx" is not one of claude-code, codex, command; did you mean codex?`},
		{"agents that are none", "fallback: ['cdex:o1']\n", `F:1: fallback: "cdex" is not one of claude-code, codex, command; did you mean codex?`},
		{"sandbox that is none", "sandbox: chroot\n", `F:1: sandbox: "chroot" is not one of auto, native, docker, sbx, landlock, later, none, podman`},
		{"list for one", "agent: [codex]\n", `F:1: agent: must be text, not a list`},
		{"map for one", "agent: {a: b}\n", `F:1: agent: must be text`},
		{"map for lines", "gate: {a: b}\n", `F:1: gate: must be text or a list of texts`},
		{"map for names", "labels: {a: b}\n", `F:1: labels: must be text or a list of texts`},
		{"map for an amount", "budget-usd: {a: b}\n", `F:1: budget-usd: must be a number`},
		{"map for a boolean", "skip-permissions: {a: b}\n", `F:1: skip-permissions: must be true or false`},
		{"list for a number", "parallel: [1]\n", `F:1: parallel: must be a whole number, not a list`},
		{"URL for a host", "allow: ['https://goproxy.example.com/x?y']\n", `F:1: allow: "https://goproxy.example.com/x?y" is a URL, not a host; write goproxy.example.com`},
		{"URL with a port", "allow: ['http://localhost:8080']\n", `F:1: allow: "http://localhost:8080" is a URL, not a host; write localhost:8080`},
		{"URL of nothing", "allow: ['https://']\n", `F:1: allow: "https://" is a URL, not a host`},
		{"port", "allow: ['x:abc']\n", `F:1: allow: "x:abc" is not a host to allow: port "abc" is not a number`},
		{"too many colons", "allow: ['a:b:c']\n", `F:1: allow: "a:b:c" is not a host to allow: use HOST, HOST:PORT or [IPv6]:PORT`},
		{"everything", "allow: ['*']\n", `F:1: allow: "*" is not a host to allow: a star stands only for the names below a domain, as in *.example.com`},
		{"mount", "mounts: ['hots=/a']\n", `F:1: mounts: "hots=/a" is not a mount such as host=/data,inside=/mnt,readonly: "hots" is none of these`},
		{"mount of nothing", "mounts: [readonly]\n", `F:1: mounts: "readonly" is not a mount such as host=/data,inside=/mnt,readonly: host is missing`},
		{"folder to show", "sandbox-show: [bin]\n", `F:1: sandbox-show: "bin" is neither an absolute path nor one below the home (~/PATH)`},
		{"copy from outside", "copy: [.env, ../x]\n", `F:1: copy: "../x" is not a path inside the repository; write it from the repository's top, such as .env`},
		{"all of it", "copy: [.]\n", `F:1: copy: "." is not a path inside the repository; write it from the repository's top, such as .env`},
		{"input from outside", "setup-inputs: [/a]\n", `F:1: setup-inputs: "/a" is not a path inside the repository; write it from the repository's top, such as .env`},
		{"a key that is the user's alone", "proof-key: mine\n", `F:1: proof-key: a repository may not set this key; use your own file, a variable or a flag`},
		{"app without its key", "github-app-id: 5\n", `F:1: github-app-id needs github-app-key; give --github-app-key FILE`},
		{"map in a list", "gate:\n  - go: test\n", `F:1: gate: line 2 is not text; put it in quotes`},
		{"boolean for a command", "gate: true\n", `F:1: gate: true is not a command; put it in quotes if you mean the program`},
		{"old boolean for a command", "gate: yes\n", `F:1: gate: yes is not a command; put it in quotes if you mean the program`},
		{"old boolean in commands", "gate: [make, Off]\n", `F:1: gate: Off is not a command; put it in quotes if you mean the program`},
		{"number in commands", "setup: [make, 5]\n", `F:1: setup: 5 is not a command; put it in quotes if you mean the program`},
		{"boolean for a line", "retest-command: false\n", `F:1: retest-command: false is not a command; put it in quotes if you mean the program`},
		{"boolean for a program", "agent: command\nagent-command: [true, 5]\n",
			`F:2: agent-command: true is not a command; put it in quotes if you mean the program`},
		{"one for a group", "local: issues\n", `F:1: local must have "key: value" lines`},
		{"empty item", "labels: ['']\n", `F:1: labels: "" is empty; a label needs a name`},
		{"empty line", "gate: ['']\n", `F:1: gate: "" is empty; write a command, or remove it`},
		{"no labels", "labels: []\n", `F:1: labels is empty; name at least one, because ralph would work every open issue`},
		{"variable", "agent-env: ['1A=secret']\n", `F:1: agent-env: a value is neither NAME nor NAME=VALUE`},
		{"quotes", "agent: command\nagent-command: a 'b\n", `F:2: agent-command: the ' at character 3 is never closed`},
		{"pipe", "agent: command\nagent-command: a | b\n", `F:2: agent-command: '|' needs a shell; quote it, or write sh -c '…'`},
		{"branch prefix", "branch-prefix: a..b\n", `F:1: branch-prefix: "a..b" cannot begin a branch name; write something like ralph/ (A to Z, a to z, 0 to 9, . _ - /)`},
		{"branch prefix with a command", "branch-prefix: r$(id)/\n", `F:1: branch-prefix: "r$(id)/" cannot begin a branch name; write something like ralph/ (A to Z, a to z, 0 to 9, . _ - /)`},
		{"priority without a number", "priority-labels: [urgent]\n", `F:1: priority-labels: "urgent" is not LABEL=NUMBER, such as urgent=1`},
		{"priority of no label", "priority-labels: ['=1']\n", `F:1: priority-labels: "=1" has a label that is empty; a label needs a name`},
		{"priority of nothing", "priority-labels: [urgent=0]\n", `F:1: priority-labels: "urgent=0" has no whole number from 1 to 2147483647 after the equals sign`},
		{"two priorities", "priority-labels: [Urgent=1, soon=2, urgent=3]\n", `F:1: priority-labels names the label "urgent" twice; remove one`},
		{"review picks up", "review-label: No-Human\n", `F:1: review-label "No-Human" is one of the labels that pick an issue up; choose another`},
		{"two states in one label", "needs-info-label: x\nclaimed-label: X\n", `F:2: claimed-label "X" is also needs-info-label; choose another`},
		{"a state that is another's default", "failed-label: In-Review\n", `F:1: failed-label "In-Review" is also review-label; choose another`},
		{"excluded while it is worked", "claimed-label: busy\nexclude-labels: [wip, Busy]\n", `F:1: claimed-label "busy" is also one of exclude-labels; choose another`},
		{"a blank state", "failed-label: ' '\n", `F:1: failed-label: " " is empty; a label needs a name`},
		{"option as base", "base: --upload-pack=x\n", `F:1: base: "--upload-pack=x" begins with a dash`},
		{"control characters", "model: \"a\\u001b[31m\"\n", `F:1: model: "a\x1b[31m" contains control characters`},
		{"exclusive", "permission-mode: plan\nskip-permissions: true\n", `F:1: permission-mode and skip-permissions exclude each other; choose one`},
		{"model that looks like a flag", "limit: 1\nmodel: --x\n", `F:2: model: "--x" is not the name of a model: no leading dash, no blanks and at most 256 characters`},
		{"model of a program", "agent: command\nagent-command: [x]\nmodel: m\n", `F:3: model "m" cannot be passed to your own program; put it into the program's command`},
		{"model of a program that goes on", "agent-command: [x]\nagent: command\nfallback: [claude-code, 'command:m']\n", `F:3: model "m" cannot be passed to your own program; put it into the program's command`},
		{"agent without its program", "agent: command\n", `F:1: agent "command" needs its program: agent-command: PROGRAM ARG…`},
		{"program without its agent", "agent: codex\nagent-command: x\n", `F:2: agent-command needs agent "command", not "codex" (F:1)`},
		{"cap", "completion-cap: 30s\n", `F:1: completion-cap 30s is less than completion-timeout 1m0s`},
		{"backoff", "retry-backoff: 2h\nretry-backoff-max: 90m\n", `F:2: retry-backoff-max 1h30m0s is less than retry-backoff 2h0m0s`},
		{"list at the top", "- a\n", `F:1: the file must have "key: value" lines`},
		{"text at the top", "hello\n", `F:1: the file must have "key: value" lines`},
		{"two documents", "parallel: 1\n---\nlimit: 2\n", `F:3: a second YAML document; a file may have only one`},
		{"alias", "model: &m x\n", `F:1: model: must be text`},
		{"merge", "<<: x\n", "F:1: unknown key \"<<\"; `ralph config` lists the keys"},
		{"not UTF-8", "model: \xff\n", `F: is not UTF-8 text`},
		{"all at once", "paralel: 1\nlimit: x\n", "F:1: unknown key \"paralel\"; did you mean parallel?\nF:2: limit: \"x\" is not a whole number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, root, err := setup{repo: c.file}.load(t)
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.ReplaceAll(err.Error(), root+"/repo/.ralph/config.yaml", "F")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestBrokenYAML checks the line of invalid YAML. The text is the parser's.
func TestBrokenYAML(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, where string }{
		{"bracket", "parallel: 1\nlabels: [a, b\n", "F:2: not valid YAML: "},
		{"quote", "parallel: 1\n\nmodel: \"x\n", "F:3: not valid YAML: "},
		{"tab", "local:\n\tdir: x\n", "F:2: not valid YAML: found a tab "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, root, err := setup{repo: c.file}.load(t)
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.ReplaceAll(err.Error(), root+"/repo/.ralph/config.yaml", "F")
			if !strings.HasPrefix(got, c.where) || strings.Contains(got, "\n") {
				t.Errorf("got %q, want one line that begins %q", got, c.where)
			}
		})
	}
}

func TestBadVariable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ env, want string }{
		{"RALPH_PARALLEL=x", `RALPH_PARALLEL: "x" is not a whole number`},
		{"RALPH_AGENT=cdex", `RALPH_AGENT: "cdex" is not one of claude-code, codex, command; did you mean codex?`},
		{"RALPH_AGENT_COMMAND=a \"", `RALPH_AGENT_COMMAND: the " at character 3 is never closed`},
		{"RALPH_AGENT_ENV=sk-secret", `RALPH_AGENT_ENV: a value is neither NAME nor NAME=VALUE`},
	} {
		_, _, err := setup{env: []string{c.env}}.load(t)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.env, err, c.want)
		}
	}
}

// FuzzFile checks that every problem of any file is one line with a place, and that whatever loads is valid.
func FuzzFile(f *testing.F) {
	f.Add(example())
	f.Add("parallel: 3\nlocal: {dir: x}\n")
	f.Add("a: &x [*x]\n? b\n: c\n--- |\n  x\n")
	f.Add("\ufefflabels:\r\n- a\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		l := newLayer(FromRepository)
		(&file{path: "F", layer: l, seen: map[string]int{}}).parse([]byte(text))
		for _, p := range l.problems {
			if !strings.HasPrefix(p.Where, "F") || strings.Contains(p.Error(), "\n") {
				t.Errorf("problem %q", p.Error())
			}
		}
		for name, v := range l.values {
			k, ok := keys.Lookup(name)
			if !ok || k.Verify(v, k.Choices) != nil {
				t.Errorf("%s: %v", name, v)
			}
		}
	})
}
