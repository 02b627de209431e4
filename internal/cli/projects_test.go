package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/service/servicetest"
)

const projectsText = `# what we work
parallel: 6 # slots

projects: # the list
  # the shop
  - repo: /src/shop
    name: shop
    gate:
      - make test # slow

  # the site
  - name: site
    repo: /src/site

# the end
`

func TestEditProjects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		edit       func(string) (string, error)
		want       string
	}{
		{"add", projectsText, func(s string) (string, error) { return addProject(s, "/src/new", "") },
			strings.Replace(projectsText, "\n\n# the end", "\n  - repo: /src/new\n\n# the end", 1)},
		{"add with a name", projectsText, func(s string) (string, error) { return addProject(s, "/src/a: b", "new") },
			strings.Replace(projectsText, "\n\n# the end", "\n  - repo: \"/src/a: b\"\n    name: new\n\n# the end", 1)},
		{"add to nothing", "", func(s string) (string, error) { return addProject(s, "/src/new", "") }, "projects:\n  - repo: /src/new\n"},
		{"add to no list", "parallel: 2\n", func(s string) (string, error) { return addProject(s, "/src/new", "") },
			"parallel: 2\nprojects:\n  - repo: /src/new\n"},
		{"add to an empty list", "projects:\nparallel: 2\n", func(s string) (string, error) { return addProject(s, "/src/new", "") }, ""},
		{"add without indentation", "projects:\n- repo: /a\nparallel: 2", func(s string) (string, error) { return addProject(s, "/b", "") },
			"projects:\n- repo: /a\n- repo: /b\nparallel: 2\n"},
		{"add to a flow", "projects: [{repo: /a}]\n", func(s string) (string, error) { return addProject(s, "/b", "") }, ""},
		{"remove the first", projectsText, func(s string) (string, error) { return removeProject(s, 0) },
			strings.Replace(projectsText, "  - repo: /src/shop\n    name: shop\n    gate:\n      - make test # slow\n", "", 1)},
		{"remove the last", projectsText, func(s string) (string, error) { return removeProject(s, 1) },
			strings.Replace(projectsText, "  - name: site\n    repo: /src/site\n", "", 1)},
		{"remove from a flow", "projects: [{repo: /a}, {repo: /b}]\n", func(s string) (string, error) { return removeProject(s, 1) }, ""},
	} {
		got, err := c.edit(c.text)
		if (err != nil) != (c.want == "") || got != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, got, c.want)
		}
	}
}

// What was added and removed again leaves the text as it was.
func TestEditProjectsUndoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := "parallel: 2\nprojects:\n"
		n := rapid.IntRange(1, 4).Draw(t, "n")
		for i := range n {
			text += rapid.SampledFrom([]string{"", "\n", "  # note\n", "# note\n"}).Draw(t, "between")
			text += fmt.Sprintf("  - repo: /src/%d\n", i) + rapid.SampledFrom([]string{"", "    gate: |\n      - not an item\n\n      more\n", "    # note\n    model: x\n"}).Draw(t, "more")
		}
		text += rapid.SampledFrom([]string{"", "# the end\n", "\n\n"}).Draw(t, "end")
		more, err := addProject(text, "/src/new", "new")
		if err != nil {
			t.Fatal(err)
		}
		back, err := removeProject(more, n)
		if want := strings.TrimRight(text, "\n") + "\n"; err != nil || back != want {
			t.Fatalf("%v\n%s\nwant\n%s", err, back, want)
		}
	})
}

func TestProjects(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "README", "hello\n")
	m.commit(t)
	nowhere := "--listen=unix:" + filepath.Join(m.root, "none.sock")
	do := func(status int, want string, args ...string) ran {
		t.Helper()
		got := m.run(t, nil, append(append([]string{"projects"}, args...), nowhere)...)
		if got.status != status || !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("%q: %+v, want %q", args, got, want)
		}
		return got
	}
	do(exit.Usage, "does not exist; `ralph projects add REPO` makes it", "list")
	do(0, "Added repo to ROOT/home/.config/ralph/serve.yaml", "add")
	do(exit.Usage, "ralph: ROOT/repo is in ROOT/home/.config/ralph/serve.yaml already, as project repo\n", "add", ".")
	do(exit.Usage, "already, as project repo", "add", "--name=again", m.repo)
	for name, want := range map[string]string{"elsewhere/repo": "another project with the name repo", "Mein Projekt ü": `ralph: project "Mein Projekt ü" needs a name`} {
		dir := filepath.Join(m.root, name)
		git := exec.CommandContext(t.Context(), "git", "init", "--quiet", dir)
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git init: %v\n%s", err, out)
		}
		do(exit.Usage, want, "add", dir)
		do(exit.Usage, ": --name NAME\n", "add", dir)
	}
	do(exit.Usage, `has no project "rpo"; did you mean repo?`, "pause", "rpo")
	do(exit.Usage, "is not in a git repository", "add", m.home)
	do(exit.Usage, "repo is the only project", "remove", "repo")
	do(exit.Usage, `has no project "other"`, "pause", "other")
	do(exit.Usage, "takes one NAME", "pause")
	do(0, "not-running", "list")
	do(0, "Paused repo", "pause", "repo")
	var list []shownProject
	if got := do(0, "paused", "list", "--json"); json.Unmarshal([]byte(got.stdout), &list) != nil || len(list) != 1 || list[0].State != "paused" || list[0].Repo != "ROOT/repo" {
		t.Errorf("%+v", got)
	}
	do(0, "Resumed repo", "resume", "repo")
	do(0, "not-running", "list")
	do(0, "Paused repo", "pause", "repo")
	m.write(t, ".ralph/config.yaml", "sandbox: none\n")
	do(0, "paused", "list")
	do(exit.Usage, "read and accept it with: ralph trust", "pause", "repo")
	file := filepath.Join(m.home, ".config", "ralph", "serve.yaml")
	if err := os.WriteFile(file, []byte("# ours\nprojects: [{repo: "+m.home+"}]\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	do(exit.Usage, "edit it by hand", "add", "--name=b", m.repo)
}

// A running service takes changes up, and is asked where it can be.
func TestProjectsOfService(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "README", "hello\n")
	m.commit(t)
	file, socket := filepath.Join(m.root, "serve.yaml"), filepath.Join(m.root, "api.sock")
	if err := os.WriteFile(file, []byte("projects:\n  - repo: "+m.repo+"\n    poll: 1h\n    sandbox: none\n    agent-command: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	errs, interrupt := newTranscript(), make(chan struct{})
	h := m.host(&out, &out)
	h.Stderr, h.Interrupt = errs, interrupt
	status := make(chan int, 1)
	go func() { status <- Run(t.Context(), []string{"serve", "--listen=unix:" + socket, file}, h) }()
	errs.until(t, "listening on")
	do := func(args ...string) ran {
		return m.run(t, nil, append(args, "--listen=unix:"+socket, "--config="+file)...)
	}
	state := func() (all string) {
		var list []shownProject
		if got := do("projects", "list", "--json"); got.status != 0 || json.Unmarshal([]byte(got.stdout), &list) != nil {
			t.Fatalf("%+v", got)
		}
		for _, p := range list {
			all += p.Name + " " + p.State + "\n"
		}
		return all
	}
	servicetest.Eventually(t, func() bool { return state() == "repo waiting\n" })
	if got := do("projects", "pause", "repo"); got.status != 0 || state() != "repo paused\n" {
		t.Errorf("%+v, %s", got, state())
	}
	if got := do("projects", "resume", "repo"); got.status != 0 {
		t.Errorf("%+v", got)
	}
	if got := do("projects", "add", "--name=two", filepath.Join(m.root, "nowhere")); got.status != exit.Usage {
		t.Errorf("%+v", got)
	}
	// While the file is broken, a person still sees what the service does, and can pause it.
	if err := os.WriteFile(file, []byte("projects: nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := do("projects", "pause", "repo"); got.status != 0 || state() != "repo paused\n" {
		t.Errorf("with a broken file: %+v, %s", got, state())
	}
	if got := do("projects", "list"); !strings.Contains(got.stderr, "serve.yaml:1") {
		t.Errorf("the broken file is not named: %+v", got)
	}
	if got := do("projects", "pause", "none"); got.status == 0 || !strings.Contains(got.stderr, "there is no such project") {
		t.Errorf("no project: %+v", got)
	}
	if got := do("projects", "pause", "rep"); got.status != exit.Usage || !strings.Contains(got.stderr, "; did you mean repo?") {
		t.Errorf("a slip: %+v", got)
	}
	close(interrupt)
	if got := <-status; got != 0 {
		t.Errorf("status %d\n%s", got, errs.until(t, ""))
	}
}
