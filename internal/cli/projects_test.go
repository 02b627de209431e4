package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/serve"
	"github.com/ralph-pool/ralph/internal/service/servicetest"
)

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
	do(exit.Usage, "nowhere does not exist; give the folder of a repository", "add", "nowhere")
	do(0, "Added repo to ROOT/home/.config/ralph/serve.yaml", "add")
	do(exit.Usage, "ralph: ROOT/repo is in ROOT/home/.config/ralph/serve.yaml already, as project repo\n", "add", ".")
	do(exit.Usage, "already, as project repo", "add", "--name=again", m.repo)
	for name, want := range map[string]string{"elsewhere/repo": "already has a project with the name repo", "Mein Projekt ü": `ralph: project "Mein Projekt ü" needs a name`} {
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
	var list []serve.ProjectData
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

// A running service applies changes of its file, and the commands ask it where they can.
func TestProjectsOfService(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "README", "hello\n")
	m.commit(t)
	file, socket := filepath.Join(m.root, "serve.yaml"), filepath.Join(m.root, "api.sock")
	if err := os.WriteFile(file, []byte("projects:\n  - repo: "+m.repo+"\n    poll: 1h\n    sandbox: none\n    agent-command: 'true'\n"), 0o600); err != nil {
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
		var list []serve.ProjectData
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
	// While the file is invalid, the projects of the service are still shown and can be paused.
	if err := os.WriteFile(file, []byte("projects: nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := do("projects", "pause", "repo"); got.status != 0 || state() != "repo paused\n" {
		t.Errorf("with a broken file: %+v, %s", got, state())
	}
	if got := do("projects", "list"); !strings.Contains(got.stderr, "serve.yaml:1") {
		t.Errorf("the broken file is not named: %+v", got)
	}
	if got := do("projects", "pause", "rep"); got.status != exit.Usage || !strings.Contains(got.stderr, "; did you mean repo?") {
		t.Errorf("a slip: %+v", got)
	}
	// A project that was removed from the file is shown until its runs have ended.
	if err := os.WriteFile(file, []byte("projects: [{repo: "+m.home+", name: other}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := state(); got != "other not-running\nrepo paused\n" {
		t.Errorf("not in the file: %s", got)
	}
	if got := do("projects", "pause", "none"); got.status == 0 || !strings.Contains(got.stderr, "the service has no project none") {
		t.Errorf("no project: %+v", got)
	}
	close(interrupt)
	if got := <-status; got != 0 {
		t.Errorf("status %d\n%s", got, errs.until(t, ""))
	}
}

// A machine of a fleet without the role web serves no API. Its answer says nothing about the project.
func TestPauseWhereNoAPIIs(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, args := range [][]string{{"list"}, {"pause", "repo"}, {"resume", "repo"}} {
		got := m.run(t, nil, append(append([]string{"projects"}, args...), "--config="+filepath.Join(m.root, "none.yaml"), "--listen="+server.Listener.Addr().String())...)
		if got.status == 0 || !strings.Contains(got.stderr, "does not answer as ralph's service") || !strings.Contains(got.stderr, "name one with the role web") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// The list says which project waits because other projects have all slots.
func TestProjectThatWaitsForASlot(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"projects":[{"name":"a","repo":"/a","state":"working","waits_for_slot":true},{"name":"b","repo":"/b","state":"working"}]}`))
	}))
	defer server.Close()
	list := []string{"projects", "list", "--config=" + filepath.Join(m.root, "none.yaml"), "--listen=" + server.Listener.Addr().String()}
	got := m.run(t, nil, list...)
	if got.status != 0 || strings.Count(got.stdout, "working, waits for a slot  0") != 1 || strings.Count(got.stdout, "working") != 2 {
		t.Errorf("%+v", got)
	}
	var all []serve.ProjectData
	got = m.run(t, nil, append(list, "--json")...)
	if json.Unmarshal([]byte(got.stdout), &all) != nil || len(all) != 2 || !all[0].WaitsForSlot || all[1].WaitsForSlot {
		t.Errorf("%+v", got)
	}
}
