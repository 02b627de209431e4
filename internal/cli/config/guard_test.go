package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/trust"
	"github.com/ralph-pool/ralph/worktree/git"
)

func nobody() (trust.Values, error) { return nil, nil }

// TestEveryKeyIsJudged checks that every key has a guard.
func TestEveryKeyIsJudged(t *testing.T) {
	t.Parallel()
	guards := []keys.Guard{
		keys.Ordinary, keys.Changed, keys.Listed, keys.Outside, keys.Own,
		keys.Above, keys.Below, keys.Lacking, keys.Beyond, keys.Looser,
	}
	for _, k := range keys.All() {
		if !slices.Contains(guards, k.Guard) {
			t.Errorf("%s: nobody has judged whether a repository may set it; give it a Guard (%q)", k.Name, guards)
		}
		if (k.Guard == keys.Looser) != (len(k.Levels) > 0) {
			t.Errorf("%s: Guard %q with the levels %v", k.Name, k.Guard, k.Levels)
		}
		if len(k.Levels) > 0 && k.Level(k.Default) == len(k.Levels) {
			t.Errorf("%s: its default is on no level", k.Name)
		}
		if slices.Contains([]keys.Guard{keys.Listed, keys.Lacking}, k.Guard) && !k.List() {
			t.Errorf("%s: Guard %q is for lists", k.Name, k.Guard)
		}
	}
	if (keys.Key{Kind: keys.Text, Default: ""}).Guarded("x", "", "/repo") != true {
		t.Error("a key that nobody has judged is ordinary")
	}
}

// TestUntrusted checks that each value that acts outside of the sandbox stops the program, and that ordinary values do not.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file string
		user string
		keys string // in the error; empty: the file loads
	}{
		// Programs on the host.
		{file: "token-command: sh -c 'id >pwned'\n", keys: "token-command"},
		{file: "before: [make deps]\n", keys: "before"},
		{file: "agent-command: ./evil\n", keys: "agent-command"},
		{file: "agent-args: [--settings, evil.json]\n", keys: "agent-args"},
		{file: "state-dir: .ralph/state\n", keys: "state-dir"},
		// The sandbox.
		{file: "sandbox: none\n", keys: "sandbox"},
		{file: "sandbox: landlock\n", keys: "sandbox"},
		{file: "sandbox: later\n", keys: "sandbox"},
		{file: "sandbox: native\n"},
		{file: "sandbox: docker\n"},
		{file: "sandbox: sbx\n"},
		{file: "sandbox: native\n", user: "sandbox: sbx\n", keys: "sandbox"},
		{file: "sandbox: native\n", user: "sandbox: none\n"},
		{file: "sandbox: none\n", user: "sandbox: none\n"},
		{file: "skip-permissions: true\n", keys: "skip-permissions"},
		{file: "skip-permissions: false\n"},
		{file: "permission-mode: plan\n", keys: "permission-mode"},
		{file: "container-user: '0:0'\n", keys: "container-user"},
		{file: "container-runtime: runc\n", keys: "container-runtime"},
		{file: "container-runtime: ''\n", user: "container-runtime: runsc\n", keys: "container-runtime"},
		{file: "container-unbounded: true\n", keys: "container-unbounded"},
		{file: "container-userns: host\n", keys: "container-userns"},
		{file: "container-selinux: disable\n", keys: "container-selinux"},
		{file: "container-groups: [docker]\n", keys: "container-groups"},
		{file: "container-devices: [/dev/kvm]\n", keys: "container-devices"},
		{file: "container-args: [--privileged]\n", keys: "container-args"},
		// Network and files.
		{file: "allow: [evil.example]\n", keys: "allow"},
		{file: "allow: []\n", user: "allow: [goproxy.example.com]\n"}, // it restricts
		{file: "allow: [a.example]\n", user: "allow: [a.example, b.example]\n"},
		{file: "allow: [c.example]\n", user: "allow: [a.example, b.example]\n", keys: "allow"},
		{file: "container-network: bridge\n", keys: "container-network"},
		{file: "mounts: ['host=~/.ssh,inside=/work/ssh']\n", keys: "mounts"},
		{file: "sandbox-show: [/home]\n", keys: "sandbox-show"},
		{file: "prompt-file: ~/.ssh/id_ed25519\n", keys: "prompt-file"},
		{file: "prompt-file: ../../secret\n", keys: "prompt-file"},
		{file: "prompt-file: .git/config\n", keys: "prompt-file"},
		{file: "prompt-file: a/.GIT/config\n", keys: "prompt-file"},
		{file: "prompt-file: docs/prompt.md\n"},
		{file: "request-template: /etc/passwd\n", keys: "request-template"},
		{file: "local: {dir: ../issues}\n", keys: "local.dir"},
		{file: "local: {dir: issues}\n"},
		{file: "copy: [.env, deep/.aws]\n", keys: "copy"},
		{file: "copy: [.env]\n", keys: "copy"},
		{file: "copy: []\n"},
		{file: "protected-paths: [secret/**]\n", keys: "protected-paths"},
		{file: "protected-paths: []\n", keys: "protected-paths"},
		// Credentials.
		{file: "agent-upstream: https://evil.example\n", keys: "agent-upstream"},
		{file: "agent-env: [AWS_SECRET_ACCESS_KEY]\n", keys: "agent-env"},
		{file: "token-env: [AWS_SECRET_ACCESS_KEY]\nforge-url: https://evil.example\n", keys: "forge-url, token-env"},
		{file: "token-env: []\n", user: "token-env: [MY_TOKEN]\n", keys: "token-env"},
		{file: "token-file: ~/.netrc\n", keys: "token-file"},
		{file: "github-app-id: 5\ngithub-app-key: k.pem\ngithub-app-installation: 6\n",
			keys: "github-app-id, github-app-installation, github-app-key"},
		{file: "ca-file: evil.pem\n", keys: "ca-file"},
		{file: "sign: ssh\nsign-off: true\n", keys: "sign, sign-off"},
		{file: "commit-author: A <a@b>\ncommitter: B <b@c>\nco-authors: [C <c@d>]\n", keys: "co-authors, commit-author, committer"},
		{file: "sign: ''\n", user: "sign: ssh\n", keys: "sign"},
		{file: "remote: public-fork\n", keys: "remote"},
		{file: "project: https://evil.example/a/b\n", keys: "project"},
		{file: "tracker: gitlab\n", keys: "tracker"},
		{file: "tracker: local\n", keys: "tracker"},
		{file: "tracker: auto\nremote: auto\n"},
		{file: "tracker: local\n", user: "tracker: github\n", keys: "tracker"},
		{file: "tracker: auto\n", user: "tracker: github\n", keys: "tracker"},
		{file: "remote: none\n", keys: "remote"}, // remote decides the tracker
		{file: "trusted-bots: ['7']\n", keys: "trusted-bots"},
		// Ordinary.
		{file: "labels: [x]\ngate: [make test]\nsetup: [npm ci]\nimage: a/b\nmemory-mb: 512\npublish: branch\nmodel: m\n"},
		{file: "budget-usd: 100\nmax-attempts: 99\nmin-free-mb: 1025\ngate-on: worktree\ngate-files: report\ngate-canary: false\nparallel: 64\n"},
		{file: "agent: codex\nattempts: [codex]\nfallback: [codex]\nreview: codex\n"},
		// Acting in somebody's name.
		{file: "publish: auto-merge\n", keys: "publish"},
		{file: "publish: merge\n", keys: "publish"},
		{file: "request-target: production\n", keys: "request-target"},
		{file: "request-labels: [automerge, safe to test]\nrequest-assignees: [mallory]\nreviewers: [mallory]\n", keys: "request-assignees, request-labels, reviewers"},
		{file: "review-label: ship-it\nneeds-human-label: a\nneeds-info-label: b\nclaimed-label: c\nfailed-label: d\n",
			keys: "claimed-label, failed-label, needs-human-label, needs-info-label, review-label"},
		{user: "request-labels: [hold]\nreviewers: [ada]\nreview-label: done\n", file: "request-labels: []\nreviewers: [ada, mallory]\nreview-label: in-review\n",
			keys: "request-labels, review-label, reviewers"},
		// Values for this host, and values that count for its limits.
		{file: "write-spacing: 0s\nestimate-tokens: 1\nestimate-usd: 0.01\nmin-free-mb: 0\nkeep-runs: 1\nlayer-max-mb: 9999\nlog-level: error\n",
			keys: "estimate-tokens, estimate-usd, keep-runs, layer-max-mb, log-level, min-free-mb, write-spacing"},
		// Values that differ from the user's own.
		{user: "sandbox: docker\nimage: mine@sha256:1\n", file: "image: other\n", keys: "image"},
		{user: "sandbox: podman\n", file: "sandbox: docker\n", keys: "sandbox"},
		{user: "sandbox: none\n", file: "sandbox: landlock\n", keys: "sandbox"},
		{user: "model: haiku\neffort: low\n", file: "model: opus\neffort: high\n", keys: "effort, model"},
		{user: "model: haiku\n", file: "attempts: ['claude-code:opus']\nfallback: [codex]\nreview: codex\n", keys: "attempts, fallback, review"},
		{user: "agent-command: [mine]\n", file: "agent: claude-code\n", keys: "agent"},
		{user: "review: ''\nsetup: [a]\n", file: "review: codex\nsetup: [b]\n", keys: "review, setup"},
		{user: "container-args: [--read-only]\nbefore: [a]\nagent-args: [--strict]\n", file: "container-args: []\nbefore: []\nagent-args: []\n",
			keys: "agent-args, before, container-args"},
		{user: "budget-agents: ['claude-code=1']\nprices: ['m=1/2']\n", file: "budget-agents: []\nprices: []\n", keys: "budget-agents, prices"},
		{user: "prompt-file: ~/p.md\n", file: "prompt-file: docs/p.md\n", keys: "prompt-file"},
		{user: "gate: [make test]\n", file: "gate-on: worktree\ngate-canary: false\n", keys: "gate-canary, gate-on"},
		// Values that loosen the user's own limits.
		{user: "budget-usd: 5\n", file: "budget-usd: 0\n", keys: "budget-usd"},
		{user: "budget-usd: 5\n", file: "budget-usd: 5.5\n", keys: "budget-usd"},
		{user: "budget-usd: 5\n", file: "budget-usd: 4\n"},
		{user: "budget-usd: 0\n", file: "budget-usd: 100\n"},
		{user: "budget-tokens: 1000\n", file: "budget-tokens: 3000000000\n", keys: "budget-tokens"},
		{user: "max-attempts: 1\nmax-rounds: 0\n", file: "max-attempts: 2\nmax-rounds: 1\n", keys: "max-attempts, max-rounds"},
		{user: "max-rounds: 1\n", file: "max-rounds: 0\n"},
		{user: "no-progress: 2\n", file: "no-progress: -1\n", keys: "no-progress"},
		{user: "no-progress: 2\n", file: "no-progress: 0\n", keys: "no-progress"},
		{user: "no-progress: -1\n", file: "no-progress: 50\n"},
		{user: "min-free-mb: 5000\nkeep-runs: 50\n", file: "min-free-mb: 0\nkeep-runs: 1\n", keys: "keep-runs, min-free-mb"},
		{user: "min-free-mb: 5000\n", file: "min-free-mb: 6000\n"},
		{user: "memory-mb: 500\npids: 100\ncpus: 1\nscratch-mb: 9\n", file: "memory-mb: 0\npids: 101\ncpus: 1.5\nscratch-mb: 0\n",
			keys: "cpus, memory-mb, pids, scratch-mb"},
		{user: "memory-mb: 500\n", file: "memory-mb: 400\n"},
		{user: "layer-max-mb: 0\n", file: "layer-max-mb: 4096\n", keys: "layer-max-mb"},
		{user: "layer-max-mb: 8192\n", file: "layer-max-mb: 6000\n"},
		{user: "protected-paths: [secret/**]\n", file: "protected-paths: [x, secret/**]\n"},
		{user: "parallel: 1\nlimit: 1\n", file: "parallel: 100\nlimit: 0\n", keys: "limit, parallel"},
		{user: "run-timeout: 10m\n", file: "run-timeout: 1h\n", keys: "run-timeout"},
		{user: "run-timeout: 10m\nretry-backoff: 1h\n", file: "run-timeout: 600s\nretry-backoff: 60m\n"},
		{user: "retry-backoff: 1h\nwrite-spacing: 5s\n", file: "retry-backoff: 1s\nwrite-spacing: 0s\n", keys: "retry-backoff, write-spacing"},
		{user: "labels: [approved]\nexclude-labels: [outsider]\n", file: "labels: [bug]\nexclude-labels: []\n", keys: "exclude-labels, labels"},
		{user: "labels: [approved]\nexclude-labels: [outsider]\n", file: "labels: [bug, approved]\nexclude-labels: [x, outsider]\n"},
		{user: "authors: [me, you]\n", file: "authors: []\n", keys: "authors"},
		{user: "authors: [me, you]\n", file: "authors: [me, they]\n", keys: "authors"},
		{user: "authors: [me, you]\n", file: "authors: [me]\n"},
		{user: "authors: []\n", file: "authors: [me]\n"},
		{user: "assignee: me\nmilestone: m\n", file: "assignee: ''\nmilestone: n\n", keys: "assignee, milestone"},
		{user: "assignee: ''\n", file: "assignee: me\n"},
		{user: "publish: branch\n", file: "publish: merge\n", keys: "publish"},
		{user: "publish: pr\n", file: "publish: auto-merge\n", keys: "publish"},
		{user: "publish: merge\n", file: "publish: auto-merge\n", keys: "publish"},
		{user: "publish: branch\n", file: "publish: auto\n", keys: "publish"},
		{user: "publish: auto\n", file: "publish: pr\n", keys: "publish"},
		{user: "publish: merge\n", file: "publish: none\n"},
		{user: "gate: [make real-test]\n", file: "gate: ['true', 'yes']\n", keys: "gate"},
		{user: "gate: [make test]\n", file: "gate: [make lint, make test]\n"},
		{user: "gate-on: checkout\ngate-files: block\ngate-canary: true\n", file: "gate-on: worktree\ngate-files: require\ngate-canary: false\n",
			keys: "gate-canary, gate-files, gate-on"},
		{user: "gate-files: report\ngate-canary: false\n", file: "gate-files: block\ngate-canary: true\n"},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			s := setup{repo: c.file, user: c.user, trusted: nobody}
			_, root, err := s.load(t)
			if c.keys == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var untrusted *UntrustedError
			if !errors.As(err, &untrusted) {
				t.Fatalf("got %v", err)
			}
			if got := strings.Join(untrusted.Keys, ", "); got != c.keys {
				t.Errorf("names %s, want %s", got, c.keys)
			}
			want := root + "/repo/.ralph/config.yaml sets " + c.keys + " without your consent; " +
				"read and accept it with: ralph trust --repo " + git.Quote(root+"/repo")
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Error(diff)
			}
			if _, _, err := (setup{user: c.file, trusted: nobody}).load(t); err != nil {
				t.Errorf("in the user's own file: %v", err)
			}
			s.env = []string{"RALPH_TRUST=" + untrusted.Hash}
			if _, _, err := s.load(t); err != nil {
				t.Errorf("with its hash: %v", err)
			}
		})
	}
}

// TestFlagsAndVariablesNeedNoTrust checks that they may set what a repository's file may not.
func TestFlagsAndVariablesNeedNoTrust(t *testing.T) {
	t.Parallel()
	_, _, err := setup{
		env:  []string{"RALPH_TOKEN_COMMAND=x", "RALPH_SANDBOX=none"},
		args: []string{"--before=x", "--mount=host=/etc"}, trusted: nobody,
	}.load(t)
	if err != nil {
		t.Error(err)
	}
}

// TestFlagsAndVariablesWin checks that they also override values of the repository that would act in place of theirs.
func TestFlagsAndVariablesWin(t *testing.T) {
	t.Parallel()
	const file = "attempts: ['claude-code:opus']\nfallback: [codex]\nreview: command\nreview-command: [r]\ngate-on: worktree\ngate-canary: false\n"
	type kept struct {
		Attempts, Fallback, Review, GateOn, Canary string
		Warnings                                   int
	}
	for name, c := range map[string]struct {
		file, user string
		args, env  []string
		want       kept
	}{
		"nothing":  {file: file, want: kept{"claude-code:opus", "codex", "command", "worktree", "false", 0}},
		"model":    {file: file, args: []string{"--model=haiku"}, want: kept{"", "", "", "worktree", "false", 3}},
		"agent":    {file: file, env: []string{"RALPH_AGENT=codex"}, want: kept{"", "", "", "worktree", "false", 3}},
		"program":  {file: file, args: []string{"--agent-command=mine"}, want: kept{"", "", "", "worktree", "false", 3}},
		"gate":     {file: file, args: []string{"--gate=x"}, want: kept{"claude-code:opus", "codex", "command", "checkout", "true", 2}},
		"given":    {file: file, args: []string{"--gate=x", "--gate-on=worktree"}, want: kept{"claude-code:opus", "codex", "command", "worktree", "true", 1}},
		"default":  {file: "gate-on: checkout\n", args: []string{"--gate=x"}, want: kept{"", "", "", "checkout", "true", 0}},
		"own":      {file: "gate-on: checkout\n", user: "gate-on: worktree\n", args: []string{"--gate=x"}, want: kept{"", "", "", "checkout", "true", 0}},
		"accepted": {file: "review: codex\n", user: "model: haiku\n", args: []string{"--model=opus"}, want: kept{"", "", "codex", "checkout", "true", 0}},
		"its program": {file: "agent: claude-code\nfallback: [command]\nagent-command: [a]\n", args: []string{"--model=opus"},
			want: kept{"", "", "", "checkout", "true", 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _, err := setup{repo: c.file, user: c.user, args: c.args, env: c.env}.load(t)
			if err != nil {
				t.Fatal(err)
			}
			got := kept{Show(l.Config.Attempts), Show(l.Config.Fallback), l.Config.Review, l.Config.GateOn, Show(l.Config.GateCanary), len(l.Warnings)}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s\n%q", diff, l.Warnings)
			}
		})
	}
	l, root, err := setup{repo: file, args: []string{"--model=haiku", "--fallback=codex", "--review=codex"}}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{root + "/repo/.ralph/config.yaml:1: attempts is ignored because --model is set; to use it, give --attempt or RALPH_ATTEMPTS"}
	if diff := cmp.Diff(want, l.Warnings); diff != "" {
		t.Error(diff)
	}
}

// TestTrustIsOfTheseValues checks that changed values need consent again, unless a list only became shorter, and changes of other
// keys do not.
func TestTrustIsOfTheseValues(t *testing.T) {
	t.Parallel()
	const accepted = "allow: [a.example, c.example]\nbefore: [make deps]\nlabels: [x]\n" +
		"mounts: ['host=/a,inside=/w', 'host=/empty,inside=/w/keys']\n"
	var before trust.Values
	if _, _, err := (setup{repo: accepted, trusted: func() (trust.Values, error) { return before, nil }}).load(t); err == nil {
		t.Fatal("trusted too early")
	}
	repo := t.TempDir()
	if err := os.Mkdir(filepath.Join(repo, ".ralph"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(repo, File), []byte(accepted), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := Guarded(Sources{Repo: repo})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, keys string }{
		{file: accepted},
		{file: "# moved\ngate: [make]\n" + strings.Replace(accepted, "[make deps]", "\n- make deps", 1)},
		{file: strings.Replace(accepted, "deps", "pwn", 1), keys: "before"},
		{file: strings.Replace(accepted, "a.example", "a.example, b.example", 1), keys: "allow"},
		{file: accepted + "sandbox: none\n", keys: "sandbox"},
		{file: strings.Replace(accepted, "a.example", "b.example", 1), keys: "allow"},
		{file: strings.Replace(accepted, "a.example, ", "", 1)},
		{file: strings.Replace(accepted, "allow: [a.example, c.example]\n", "", 1)},
		{file: strings.Replace(accepted, "before: [make deps]\n", "", 1), keys: "before"},
		{file: strings.Replace(accepted, ", 'host=/empty,inside=/w/keys'", "", 1), keys: "mounts"}, // it covered a part of the other one
		{file: "labels: [x]\n"},
	} {
		_, _, err := setup{repo: c.file, trusted: func() (trust.Values, error) { return before, nil }}.load(t)
		var untrusted *UntrustedError
		switch {
		case c.keys == "" && err != nil:
			t.Errorf("%q: %v", c.file, err)
		case c.keys != "" && (!errors.As(err, &untrusted) || strings.Join(untrusted.Keys, ", ") != c.keys || !untrusted.Changed):
			t.Errorf("%q: %v", c.file, err)
		}
	}
	broken := errors.New("broken record")
	_, _, err = setup{repo: accepted, trusted: func() (trust.Values, error) { return nil, broken }}.load(t)
	if !errors.Is(err, broken) {
		t.Errorf("a record that cannot be read: %v", err)
	}
}

func TestWrongHash(t *testing.T) {
	t.Parallel()
	_, _, err := setup{repo: "sandbox: none\n", env: []string{"RALPH_TRUST=12"}, trusted: nobody}.load(t)
	var untrusted *UntrustedError
	if !errors.As(err, &untrusted) ||
		!strings.Contains(err.Error(), `(RALPH_TRUST accepts "12", and these values are `+untrusted.Hash+")") {
		t.Errorf("got %v", err)
	}
}

// TestGuardedHidesSecrets checks that secrets are hidden and still distinguished, and that paths are shown as written.
func TestGuardedHidesSecrets(t *testing.T) {
	t.Parallel()
	read := func(text string) trust.Values {
		repo := t.TempDir()
		if err := os.Mkdir(filepath.Join(repo, ".ralph"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(repo, File), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		values, err := Guarded(Sources{Repo: repo})
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	a, b := read("agent-env: [KEY=one]\n"), read("agent-env: [KEY=two]\n")
	if a[0].Shown != `["KEY=(hidden)"]` || a[0].Shown != b[0].Shown || a.Hash() == b.Hash() {
		t.Errorf("got %+v and %+v", a, b)
	}
	for line, want := range map[string]string{ // what runs a program, or names a server, is never hidden
		"PIP_FIND_LINKS=https://evil.example/x":                 "PIP_FIND_LINKS=https://evil.example/x",
		"GIT_CONFIG_KEY_0=core.sshCommand":                      "GIT_CONFIG_KEY_0=core.sshCommand",
		"X=a b " + "ghp_x7Kp2Q9vLmZ4x8Kp2Q9vLmZ4y7Kp2Q9vLmZ4 c": "X=a b (hidden) c",
		"NPM_TOKEN=x":        "NPM_TOKEN=(hidden)",
		"DB_PASS=hunter2x":   "DB_PASS=(hidden)",
		"MYSQL_PWD=hunter2x": "MYSQL_PWD=(hidden)",
		"DB=postgres://u:p%40ss-word9@db.example/x":           "DB=postgres://u:(hidden)@db.example/x",
		"INDEX=https://short@pip.example/":                    "INDEX=https://(hidden)@pip.example/",
		"GIT_CONFIG_VALUE_0=Authorization: Basic dTpw":        "GIT_CONFIG_VALUE_0=Authorization: Basic (hidden)",
		"PIP_INDEX_URL=https://me:x7Kp2Q9vLmZ4@evil.example/": "PIP_INDEX_URL=https://me:(hidden)@evil.example/",
	} {
		if got := read("agent-env: [\"" + line + "\"]\n"); got[0].Shown != `["`+want+`"]` {
			t.Errorf("%s: %s", line, got[0].Shown)
		}
	}
	got := read("prompt-file: ../x\nmounts: [\"host=\u202e/a\"]\n")
	if got[0].Shown != `["host=\u202e/a"]` || got[1].Shown != `"../x"` {
		t.Errorf("got %+v", got)
	}
	if got, again := read("prompt-file: ../x\n"), read("prompt-file: ../x\n"); got.Hash() != again.Hash() {
		t.Error("the hash depends on where the repository is")
	}
}

// TestOwnValueWins checks, for every key, that an untrusted repository cannot replace the user's own value unless it is stricter.
func TestOwnValueWins(t *testing.T) {
	t.Parallel()
	another := map[keys.Kind][2]any{
		keys.Text:     {"a", "b"},
		keys.Path:     {"/repo/a", "/repo/b"},
		keys.Bool:     {true, false},
		keys.Duration: {time.Second, time.Minute},
		keys.Int:      {1, 2},
		keys.Float:    {1.0, 2.0},
		keys.Names:    {[]string{"a"}, []string{"b"}},
		keys.Folders:  {[]string{"/a"}, []string{"/b"}},
		keys.Lines:    {[]string{"a"}, []string{"b"}},
		keys.Words:    {[]string{"a"}, []string{"b"}},
	}
	for _, k := range keys.All() {
		v := another[k.Kind]
		there, back := k.Guarded(v[0], v[1], "/repo"), k.Guarded(v[1], v[0], "/repo")
		if ordered := slices.Contains([]keys.Guard{keys.Above, keys.Below, keys.Looser}, k.Guard); ordered && !there && !back || !ordered && (!there || !back) {
			t.Errorf("%s: %v against an own %v is guarded: %t, the other way round: %t", k.Name, v[0], v[1], there, back)
		}
	}
}
