package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/pool/fleet/fleettest"
)

// transcript is the output of a command that is still running.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer  // guarded by mu
	more chan struct{} // guarded by mu; closed with the next write
}

func newTranscript() *transcript { return &transcript{more: make(chan struct{})} }

func (s *transcript) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.more)
	s.more = make(chan struct{})
	return s.text.Write(b)
}

// until waits until the output contains text, and returns all of it.
func (s *transcript) until(t *testing.T, text string) string {
	t.Helper()
	for {
		s.mu.Lock()
		all, more := s.text.String(), s.more
		s.mu.Unlock()
		if strings.Contains(all, text) {
			return all
		}
		select {
		case <-more:
		case <-time.After(time.Minute):
			t.Fatalf("no %q in\n%s", text, all)
		}
	}
}

// A service works its projects, answers requests, reloads, refuses invalid configurations, notifies systemd, and drains.
func TestServe(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/fix.md", "---\ntitle: Fix\nlabels: [no-human]\n---\nDo it.\n")
	m.write(t, "README", "hello\n")
	m.commit(t)
	file := filepath.Join(m.root, "serve.yaml")
	config := func(more string) {
		text := fmt.Sprintf("projects:\n  - repo: %s\n    name: shop\n    sandbox: none\n    agent-command: sh -c 'cat >/dev/null; echo work > work; git add work; git -c user.name=Ada -c user.email=a@example.invalid commit -qm work; echo \"<promise>COMPLETE</promise>\"'\n    commit-author: Ada <ada@example.invalid>\n%s", m.repo, more)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config("  - repo: nowhere\n")
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: filepath.Join(m.root, "notify")})
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	said := func() string {
		b := make([]byte, 100)
		n, err := notify.Read(b)
		if err != nil {
			t.Error(err)
		}
		return string(b[:n])
	}
	var out bytes.Buffer
	errs, interrupt, hangup := newTranscript(), make(chan struct{}), make(chan struct{})
	h := m.host(&out, &out)
	h.Stderr, h.Interrupt, h.Hangup = errs, interrupt, func() <-chan struct{} { return hangup }
	h.Env = append(h.Env, "NOTIFY_SOCKET="+filepath.Join(m.root, "notify"), "WATCHDOG_USEC=30000000")
	status := make(chan int, 1)
	socket := filepath.Join(m.root, "api.sock")
	go func() { status <- Run(t.Context(), []string{"serve", "--listen", "unix:" + socket, file}, h) }()
	heard := map[string]bool{said(): true, said(): true}
	if !heard["READY=1"] || !heard["WATCHDOG=1"] {
		t.Errorf("systemd heard %v", heard)
	}
	errs.until(t, "shop/fix  succeeded")
	errs.until(t, "nowhere is not a folder")

	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
	get := func() (problem string, names []string) {
		res, err := client.Get("http://localhost/v1/projects")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var got struct {
			Problem  string
			Projects []struct{ Name, Repo, State, Problem string }
		}
		if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		for _, p := range got.Projects {
			if names = append(names, p.Name); p.Name == "nowhere" && p.Repo != filepath.Join(m.root, "nowhere") {
				t.Errorf("the repository of the broken project: %q", p.Repo)
			}
		}
		return got.Problem, names
	}
	if problem, names := get(); problem != "" || fmt.Sprint(names) != "[shop nowhere]" {
		t.Errorf("projects %v, problem %q", names, problem)
	}
	config("    modle: x\n")
	hangup <- struct{}{}
	errs.until(t, "configuration refused; the last good one stays")
	if problem, names := get(); !strings.Contains(problem, `serve.yaml:7: unknown key "modle"; did you mean model?`) || len(names) != 2 {
		t.Errorf("after a bad file: projects %v, problem %q", names, problem)
	}
	config("    gate-timeout: 5m\n")
	hangup <- struct{}{}
	if text := errs.until(t, `"message":"configuration changed"`); !strings.Contains(text, `"keys":["gate-timeout"]`) {
		t.Errorf("the change is not told:\n%s", text)
	}
	errs.until(t, `"projects":1,"removed":["nowhere"]`)
	if problem, _ := get(); problem != "" {
		t.Errorf("after a good file: %q", problem)
	}
	config("  - repo: elsewhere\nparallel: 3\n")
	hangup <- struct{}{}
	errs.until(t, `"projects":2,"added":["elsewhere"],"parallel":3,"before":0`)
	close(interrupt)
	for said() != "STOPPING=1" {
	}
	if got := <-status; got != 0 {
		t.Errorf("status %d\n%s", got, errs.until(t, ""))
	}
	if out.Len() > 0 {
		t.Errorf("standard output: %s", out.String())
	}
	for line := range strings.Lines(errs.until(t, "")) {
		var record struct{ Level, Time, Message string }
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Level == "" || record.Time == "" || record.Message == "" {
			t.Errorf("standard error has what a collector cannot read: %v: %s", err, line)
		}
	}
}

// A second service for the same projects is refused while the first one works them.
func TestServeTwice(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	file, other := filepath.Join(m.root, "serve.yaml"), filepath.Join(m.root, "other.yaml")
	for _, path := range []string{file, other} {
		if err := os.WriteFile(path, []byte("projects: [{repo: nowhere}]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start := func(file string) (end func()) {
		errs, interrupt, status := newTranscript(), make(chan struct{}), make(chan int, 1)
		var out bytes.Buffer
		h := m.host(&out, &out)
		h.Stderr, h.Interrupt = errs, interrupt
		go func() { status <- Run(context.WithoutCancel(t.Context()), []string{"serve", "--listen=none", file}, h) }()
		errs.until(t, "nowhere is not a folder")
		return func() {
			close(interrupt)
			if got := <-status; got != 0 {
				t.Errorf("status %d\n%s", got, errs.until(t, ""))
			}
		}
	}
	end := start(file)
	link := filepath.Join(m.root, "link.yaml")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, again := range []string{file, link} {
		ended := func(h *compose.Host) { // otherwise a service that is not refused would work for ever
			interrupt := make(chan struct{})
			close(interrupt)
			h.Interrupt = interrupt
		}
		got := m.run(t, ended, "serve", "--log-format=text", "--listen=none", again)
		if got.status != exit.Usage || !strings.Contains(got.stderr, "another ralph serve of this machine works ROOT/serve.yaml already") {
			t.Errorf("%+v", got)
		}
	}
	start(other)()
	end()
	start(file)()
}

// Machines of a fleet serve the pages of the queue if asked to, and share the logins of people.
func TestServeInFleet(t *testing.T) {
	t.Parallel()
	server, end, err := fleettest.New()
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	m := newMachine(t)
	database := "--database=" + server.Database(t)
	if got := m.run(t, nil, "fleet", "status", database); got.status != 2 || !strings.Contains(got.stderr, "prepare it with: ralph fleet migrate --database") {
		t.Errorf("before it is prepared: status %d: %s", got.status, got.stderr)
	}
	m.write(t, "a database", strings.TrimPrefix(database, "--database="))
	byFile := "--database-file=" + filepath.Join(m.repo, "a database")
	if got := m.run(t, nil, "fleet", "status", byFile); got.status != 2 || !strings.Contains(got.stderr, "ralph fleet migrate --database-file 'ROOT/repo/a database'\n") {
		t.Errorf("before it is prepared, by a file: status %d: %s", got.status, got.stderr)
	}
	if got := m.run(t, nil, "fleet", "migrate", database); got.status != 0 {
		t.Fatalf("status %d: %s", got.status, got.stderr)
	}
	file := filepath.Join(m.root, "serve.yaml")
	if err := os.WriteFile(file, []byte("projects: [{repo: nowhere}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	worker := serveInFleet(t, m, database, "--roles=worker", file)
	const idle = "No machine has the role planner, so no new issue begins.\n"
	if got := m.run(t, nil, "fleet", "status", database); !strings.Contains(got.stdout, idle) {
		t.Errorf("without a planner: %s%s", got.stdout, got.stderr)
	}
	one, other := serveInFleet(t, m, database, file), serveInFleet(t, m, database, file)
	const token = "0123456789abcdef"
	for path, want := range map[string]string{"/queue/": "<title>River</title>", "/queue/api/jobs": `"data"`} {
		if got := one(t, "GET", path, "Authorization: Bearer "+token); got.status != http.StatusOK || !strings.Contains(got.body, want) {
			t.Errorf("%s: %+v", path, got)
		}
	}
	for path, want := range map[string]int{"/metrics": 200, "/healthz": 200, "/": 404, "/login": 404, "/v1/projects": 404, "/queue/": 404, "/hooks/nowhere": 404} {
		if got := worker(t, "GET", path, "Authorization: Bearer "+token); got.status != want {
			t.Errorf("%s of a worker: %+v", path, got)
		}
	}
	if got := one(t, "POST", "/login?token="+token); got.status != http.StatusUnauthorized {
		t.Errorf("a token in the address: %+v", got)
	}
	in := one(t, "POST", "/login", "Content-Type: application/x-www-form-urlencoded", "token="+token)
	if len(in.cookies) != 1 {
		t.Fatalf("login: %+v", in)
	}
	cookie := "Cookie: " + in.cookies[0].Name + "=" + in.cookies[0].Value
	if got := other(t, "GET", "/v1/projects", cookie); got.status != http.StatusOK {
		t.Errorf("at the other machine: %+v", got)
	}
	if got := other(t, "POST", "/logout", cookie); got.status != http.StatusSeeOther {
		t.Errorf("log-out: %+v", got)
	}
	if got := one(t, "GET", "/v1/projects", cookie); got.status != http.StatusUnauthorized {
		t.Errorf("after the log-out at the other machine: %+v", got)
	}
	got := m.run(t, nil, "fleet", "status", database)
	if strings.Contains(got.stdout, idle) {
		t.Errorf("with planners: %s", got.stdout)
	}
	for role, n := range map[string]int{"planner,worker,web": 2, " worker ": 1} {
		if row := fmt.Sprintf(" %d ", os.Getpid()); strings.Count(got.stdout, role) != n || strings.Count(got.stdout, row) != 3 || strings.Count(got.stdout, "just now") != 3 {
			t.Errorf("status %d, not %d with the roles %q:\n%s%s", got.status, n, role, got.stdout, got.stderr)
		}
	}
}

type answered struct {
	status  int
	cookies []*http.Cookie
	body    string
}

// serveInFleet runs a machine until the test ends, and returns a function that sends requests to it. Of the arguments with,
// "Name: value" is a header, and anything else is the body.
func serveInFleet(t *testing.T, m machine, args ...string) func(t *testing.T, method, path string, with ...string) answered {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	errs, interrupt, status := newTranscript(), make(chan struct{}), make(chan int, 1)
	var out bytes.Buffer
	h := m.host(&out, &out)
	h.Stderr, h.Interrupt, h.Env = errs, interrupt, append(h.Env, "RALPH_LISTEN_TOKEN=0123456789abcdef")
	go func() {
		status <- Run(context.WithoutCancel(t.Context()), append([]string{"serve", "--queue-ui", "--listen", "unix:" + socket}, args...), h)
	}()
	t.Cleanup(func() {
		close(interrupt)
		if got := <-status; got != 0 {
			t.Errorf("status %d\n%s", got, errs.until(t, ""))
		}
	})
	errs.until(t, "listening on")
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}
	return func(t *testing.T, method, path string, with ...string) answered {
		t.Helper()
		header, content := http.Header{}, ""
		for _, line := range with {
			if name, value, ok := strings.Cut(line, ": "); ok {
				header.Set(name, value)
			} else {
				content = line
			}
		}
		r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = header
		res, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answered{res.StatusCode, res.Cookies(), string(body)}
	}
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	write := func(name, text string) string {
		path := filepath.Join(m.root, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.yaml", "projects: [{repo: repo}]\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"nowhere.yaml"}, "nowhere.yaml: no such file"},
		{[]string{write("empty.yaml", "")}, "has no project"},
		{[]string{write("list.yaml", "- a\n")}, "the file must have"},
		{[]string{write("key.yaml", "paralel: 3\nprojects: [{repo: a}]\n")}, `key.yaml:1: unknown key "paralel"; did you mean parallel?`},
		{[]string{write("number.yaml", "parallel: -1\nprojects: [{repo: a}]\n")}, "number.yaml:1: parallel: -1 is less than 0"},
		{[]string{write("norepo.yaml", "projects:\n  - name: a\n")}, "norepo.yaml:2: a project has no repo"},
		{[]string{write("value.yaml", "projects:\n  - repo: a\n    poll: soon\n")}, "value.yaml:3: poll:"},
		{[]string{write("name.yaml", "projects:\n  - repo: a\n    name: a/b\n")}, `project "a/b" needs a name`},
		{[]string{write("twice.yaml", "projects:\n  - repo: a\n  - repo: b/a\n")}, `two projects have the name "a"`},
		{[]string{write("same.yaml", "projects:\n  - repo: a\n  - {repo: ./a, name: b}\n")}, "two projects have the repository"},
		{[]string{"--listen", "0.0.0.0:0", good}, "a token is needed; give --listen-token-file FILE or RALPH_LISTEN_TOKEN"},
		{[]string{"--listen", "nonsense", good}, `--listen: "nonsense" is neither HOST:PORT nor unix:PATH`},
		{[]string{"--listen", "systemd", good}, "--listen: systemd passed no socket, or more than one"},
		{[]string{"--listen-token-file", write("short", "abc\n"), good}, "has fewer than 16 characters"},
		{[]string{"--listen-token-file", filepath.Join(m.root, "none"), good}, "none: no such file or directory; make one with: (umask 077; openssl rand -hex 32 >"},
		{[]string{"--listen-host", "https://ralph.example.com", good}, `--listen-host: "https://ralph.example.com" is not the name of a host; give it without https://, port and brackets`},
		{[]string{"--listen-host", "ralph.example.com:443", good}, "give it without https://, port and brackets"},
		{[]string{"--listen-host", "[::1]", good}, "give it without https://, port and brackets"},
		{[]string{"--queue-ui", good}, "--queue-ui is for a fleet, which needs --database"},
		{[]string{"--repo", m.repo, good}, "--repo and CONFIG exclude each other"},
		{[]string{good, good}, "ralph serve takes one CONFIG, not 2"},
	} {
		if got := m.run(t, nil, append([]string{"serve", "--log-format=text"}, c.args...)...); got.status != exit.Usage || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%q: status %d, want %q\n%s", c.args, got.status, c.want, got.stderr)
		}
	}
	short := func(h *compose.Host) { h.Env = append(h.Env, "RALPH_LISTEN_TOKEN=x") }
	for _, command := range [][]string{{"serve", "--listen", "nonsense", good}, {"top", "127.0.0.1:1"}} {
		if got := m.run(t, short, command...); got.status != exit.Usage || !strings.Contains(got.stderr, "RALPH_LISTEN_TOKEN has fewer than 16 characters") {
			t.Errorf("%q with a short token: status %d\n%s", command, got.status, got.stderr)
		}
	}
}
