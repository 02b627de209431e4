package cli

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// TestRepositoryReadsNoFilesOfTheUsers checks that a repository's setting can only name files of the repository as templates, and
// that nobody can name the file of keys.
func TestRepositoryReadsNoFilesOfTheUsers(t *testing.T) {
	t.Parallel()
	const secret, usual, changed = "hunter2-of-the-user", "Do {{issue}} {{signal}}\n", "Do {{issue}} {{signal}} quickly\n"
	m := newMachine(t)
	m.write(t, ".gitignore", ".env\n")
	m.write(t, ".ralph/.gitignore", ".env\nconfig.yaml\n")
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.write(t, "docs/prompt.md", usual)
	m.write(t, "docs/request.md", "{{report}}\n")
	m.write(t, "docs/settings", "KEY=\n")
	for link, to := range map[string]string{"docs/env": "../.env", "docs/keys": "../.ralph/.env", "docs/link": "prompt.md", "docs/ralph": "../.ralph"} {
		if err := os.Symlink(to, m.repo+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	m.commit(t)
	m.write(t, ".env", "DB_PASSWORD="+secret+"\n")
	m.write(t, ".ralph/.env", "ANTHROPIC_API_KEY="+secret+"\n")
	m.write(t, "docs/settings", "KEY="+secret+"\n")
	m.write(t, "notes.md", secret+"\n")
	if err := unix.Mkfifo(m.repo+"/docs/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	prompt := []string{"prompt", "one", "--agent-command=true"}
	const file = "ROOT/repo/.ralph/config.yaml:1"
	foreign := func(key, name string) string {
		return "ralph: " + file + ": " + key + ": ROOT/repo/" + name + " differs from git's index, so it may contain private text; git add it, or give --" + key + "\n"
	}
	keys := func(where, name string) string {
		return "ralph: " + where + ": ROOT/repo/" + name + " contains your keys, so it cannot be a template\n"
	}
	for _, c := range []struct {
		file, user string
		args       []string
		want       string // on standard error
	}{
		{file: "prompt-file: docs/prompt.md\n"},
		{file: "prompt-file: docs/link\n"},
		{file: "prompt-file: .env\n", want: foreign("prompt-file", ".env")},
		{file: "prompt-file: notes.md\n", want: foreign("prompt-file", "notes.md")},
		{file: "prompt-file: docs/settings\n", want: foreign("prompt-file", "docs/settings")},
		{file: "prompt-file: docs/env\n", want: foreign("prompt-file", "docs/env")},
		{file: "prompt-file: docs/pipe\n", want: "ralph: " + file + ": prompt-file: ROOT/repo/docs/pipe is not a regular file\n"},
		{file: "request-template: .env\n", want: foreign("request-template", ".env")},
		{file: "request-template: docs/env\n", want: foreign("request-template", "docs/env")},
		{file: "request-template: docs/request.md\n"},
		{file: "prompt-file: .ralph/.env\n", want: keys(file+": prompt-file", ".ralph/.env")},
		{file: "prompt-file: docs/keys\n", want: keys(file+": prompt-file", "docs/keys")},
		{file: "request-template: docs/ralph/.env\n", want: keys(file+": request-template", "docs/ralph/.env")},
		{args: []string{"--prompt-file=notes.md"}},
		{args: []string{"--prompt-file=.ralph/.env"}, want: keys("--prompt-file", ".ralph/.env")},
	} {
		m.write(t, ".ralph/config.yaml", c.file)
		got := m.run(t, nil, append(prompt, c.args...)...)
		if got.stderr != c.want || (got.status == 0) != (c.want == "") || c.want != "" && strings.Contains(got.stdout, secret) {
			t.Errorf("%q %q: %+v", c.file, c.args, got)
		}
	}
	m.write(t, ".ralph/config.yaml", "")
	got := m.run(t, nil, "work", "--dry-run", "--agent-command=true", "--request-template=.ralph/.env")
	if got.status == 0 || got.stderr != keys("--request-template", ".ralph/.env") {
		t.Errorf("the template of requests: %+v", got)
	}
	// The default place needs no commit, but a link there counts as the repository's.
	m.write(t, ".ralph/prompt.md", changed)
	if got := m.run(t, nil, prompt...); got.status != 0 || !strings.Contains(got.stdout, "quickly") {
		t.Errorf("the prompt at its place: %+v", got)
	}
	if err := os.Remove(m.repo + "/.ralph/prompt.md"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../.env", m.repo+"/.ralph/prompt.md"); err != nil {
		t.Fatal(err)
	}
	if got := m.run(t, nil, prompt...); got.status != exit.Usage || strings.Contains(got.stdout, secret) || !strings.Contains(got.stderr, "prompt.md differs from git's index") {
		t.Errorf("a link at the prompt's place: %+v", got)
	}
	run := []string{"run", "--sandbox=none", "--agent-command=true", "--prompt-file=.ralph/.env"}
	if got := m.run(t, nil, run...); got.status != exit.Usage || got.stderr != "ralph: --prompt-file: ROOT/repo/.ralph/.env contains your keys, so it cannot be a template\n" {
		t.Errorf("run: %+v", got)
	}
	for _, c := range []struct{ flag, key string }{
		{"--mount=host=.ralph/.env,inside=/x", "mount"}, {"--mount=host=.,inside=/x", "mount"}, {"--mount=host=docs/ralph,inside=/x", "mount"},
		{"--sandbox-show=" + m.repo, "sandbox-show"},
	} {
		sandbox := "--sandbox=docker"
		if c.key == "sandbox-show" {
			sandbox = "--sandbox=landlock"
		}
		got := m.run(t, nil, "sandbox", "exec", sandbox, c.flag, "--", "true")
		if got.status != exit.Usage || !strings.Contains(got.stderr, "would show your keys in .ralph/.env to agents") {
			t.Errorf("%s: %+v", c.flag, got)
		}
	}
}

// The check whether git has a template runs no filter of git's configuration, because its program may be a file of the
// repository.
func TestTemplatesGoThroughNoFilter(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.write(t, ".ralph/config.yaml", "prompt-file: docs/prompt.md\n")
	m.write(t, "docs/prompt.md", "Do {{issue}} {{signal}}\n")
	m.commit(t)
	m.write(t, "docs/.gitattributes", "prompt.md filter=f\n")
	m.git(t, "config", "filter.f.clean", "touch "+m.root+"/ran; cat")
	m.git(t, "config", "filter.f.required", "true")
	got := m.run(t, nil, "prompt", "one", "--agent-command=true")
	if _, err := os.Stat(m.root + "/ran"); got.status != 0 || err == nil {
		t.Errorf("the filter has run: %v; %+v", err == nil, got)
	}
}
