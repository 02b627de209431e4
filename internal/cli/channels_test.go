package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/notify"
	"github.com/ralph-pool/ralph/internal/service/servicetest"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/local"
)

const committing = `sh -c 'cat >/dev/null; echo work > "$RALPH_ISSUE_KEY"; git add -A; git -c user.name=Ada -c user.email=a@example.invalid commit -qm work; echo "<promise>COMPLETE</promise>"'`

// own writes the user's own configuration.
func (m machine) own(t *testing.T, text string) {
	t.Helper()
	dir := filepath.Join(m.home, ".config", "ralph")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A link in a notification leads to the project's page in the user's service, under the project's name there.
func TestLinksAreTheServices(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/fix.md", "---\ntitle: Fix it\nlabels: [no-human]\n---\nDo it.\n")
	m.commit(t)
	file := filepath.Join(m.root, "told")
	m.own(t, fmt.Sprintf("dashboard-url: https://ralph.example\nnotify-on: [succeeded]\nnotify-command: [sh, -c, 'cat > %s']\n", file))
	list := fmt.Sprintf("projects:\n  - {name: other, repo: %s}\n  - {name: shop, repo: %s}\n", m.root, m.repo)
	if err := os.WriteFile(filepath.Join(m.home, ".config", "ralph", "serve.yaml"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := m.run(t, nil, "work", "--sandbox=none", "--commit-author=Ada <a@example.invalid>", "--agent-command="+committing); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `"project_url":"https://ralph.example/p/shop"`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestWorkNotifies(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/fix.md", "---\ntitle: Fix it\nlabels: [no-human]\n---\nDo it.\n")
	m.commit(t)
	file := filepath.Join(m.root, "told")
	m.own(t, fmt.Sprintf("dashboard-url: https://ralph.example/\nnotify-on: [succeeded]\nnotify-command: [sh, -c, 'cat > %s; env >> %[1]s; find %s -path \"*/outbox/*.json\" > %[1]s.kept']\n", file, m.root))
	got := m.run(t, func(h *compose.Host) { h.Env = append(h.Env, "RALPH_WEBHOOK_SECRET=for-nobody-else") },
		"work", "--sandbox=none", "--commit-author=Ada <a@example.invalid>", "--agent-command="+committing)
	if got.status != 0 {
		t.Fatalf("%+v", got)
	}
	text, err := os.ReadFile(file)
	first, env, _ := strings.Cut(string(text), "\n")
	var message notify.Message
	if err != nil || json.Unmarshal([]byte(first), &message) != nil || message.Text != "repo/fix (Fix it): succeeded" || message.Project != "repo" {
		t.Errorf("%s, %v", text, err)
	}
	if message.IssueURL != filepath.Join(m.repo, ".ralph/backlog/fix.md") || message.RunURL != "https://ralph.example/p/repo/runs/"+message.Run || message.ProjectURL != "https://ralph.example/p/repo" {
		t.Errorf("links: %+v", message)
	}
	kept, err := os.ReadFile(file + ".kept")
	path := strings.TrimSpace(string(kept))
	if _, gone := os.Stat(path); err != nil || path == "" || !errors.Is(gone, fs.ErrNotExist) {
		t.Errorf("kept on disk while it is sent: %q, %v; afterwards: %v", path, err, gone)
	}
	if strings.Contains(env, "for-nobody-else") {
		t.Error("the program sees the webhook's secret")
	}
}

func TestNotifyRefuses(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "README", "hello\n")
	m.commit(t)
	for own, want := range map[string]string{
		"notify-on: [everything]":                                   "must be one of human, problem, succeeded",
		"notify-url: http://example.com":                            "must begin with https://",
		"dashboard-url: ralph.example.com":                          "must be an address that begins",
		"notify-mail-to: [nobody]":                                  "is not an e-mail address",
		"notify-mail-to: [a@example.com]":                           "notify-mail-server is needed",
		"notify-mail-server: mail":                                  "is not HOST:PORT",
		"notify-slack-file: none":                                   "no such file",
		"notify-url: https://example.com\nnotify-secret-file: none": "no such file",
		"notify-mail-to: [a@example.com]\nnotify-mail-server: mail:25\nnotify-mail-from: b@example.com\nnotify-mail-user: b": "notify-mail-password-file is needed",
	} {
		m.own(t, own+"\n")
		if got := m.run(t, nil, "work", "--sandbox=none", "--agent-command=true"); got.status != exit.Usage || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v, want %q", own, got, want)
		}
	}
	m.own(t, "")
	m.write(t, ".ralph/config.yaml", "notify-command: [sh]\n")
	if got := m.run(t, nil, "work", "--sandbox=none", "--agent-command=true"); got.status != exit.Usage || !strings.Contains(got.stderr, "notify-command") {
		t.Errorf("a repository's own: %+v", got)
	}
}

// A delivery that the tracker's descriptor accepts makes the service work new issues; other deliveries do not.
func TestServeWebhook(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "README", "hello\n")
	m.commit(t)
	folder := local.Descriptor()
	kind := tracker.Descriptor{
		Name: "acmetrack", Title: "AcmeTrack", Options: []tracker.Option{tracker.OptionFolder}, Open: folder.Open,
		Webhook: func(d tracker.Delivery) (tracker.Notice, error) {
			if d.Header.Get("Secret") != string(d.Secret) || d.Project != "https://acmetrack.example/acme/widgets" {
				return tracker.Notice{}, tracker.ErrForged
			}
			return tracker.Notice{Wake: true}, nil
		},
	}
	write := func(name, text string) string {
		path := filepath.Join(m.root, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret := write("secret", "0123456789abcdef\n")
	config := func(more string) string {
		return write("serve.yaml", fmt.Sprintf("projects:\n  - repo: %s\n    name: shop\n    tracker: acmetrack\n    project: https://acmetrack.example/acme/widgets\n    poll: 1h\n    sandbox: none\n    commit-author: Ada <a@example.invalid>\n    agent-command: %s\n%s", m.repo, committing, more))
	}
	file := config("    webhook-secret-file: " + secret + "\n")
	if err := os.MkdirAll(filepath.Join(m.repo, ".ralph", "backlog"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	errs, interrupt := newTranscript(), make(chan struct{})
	h := m.host(&out, &out)
	h.Stderr, h.Interrupt, h.Trackers = errs, interrupt, []tracker.Descriptor{kind}
	status := make(chan int, 1)
	socket := filepath.Join(m.root, "api.sock")
	go func() { status <- Run(t.Context(), []string{"serve", "--listen", "unix:" + socket, file}, h) }()
	errs.until(t, "listening on")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
	send := func(secret string) int {
		r, _ := http.NewRequest(http.MethodPost, "http://localhost/hooks/shop", strings.NewReader(secret))
		r.Header.Set("Secret", secret)
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	servicetest.Eventually(t, func() bool { return state(t, client) == "waiting" })
	m.write(t, ".ralph/backlog/fix.md", "---\ntitle: Fix\nlabels: [no-human]\n---\nDo it.\n")
	if got := send("wrong"); got != http.StatusUnauthorized {
		t.Errorf("forged: %d", got)
	}
	if got := send("0123456789abcdef"); got != http.StatusAccepted {
		t.Errorf("genuine: %d", got)
	}
	errs.until(t, "shop/fix  succeeded")
	for _, c := range []struct {
		file, sent string
		want       int
	}{ // the secret is renewed while ralph runs
		{"fedcba9876543210\n", "0123456789abcdef", http.StatusUnauthorized}, {"fedcba9876543210\n", "fedcba9876543210", http.StatusAccepted},
		{"short", "short", http.StatusBadRequest}, {"", "", http.StatusBadRequest},
	} {
		write("secret", c.file)
		if got := send(c.sent); got != c.want {
			t.Errorf("%q with the file %q: %d, want %d", c.sent, c.file, got, c.want)
		}
	}
	close(interrupt)
	if got := <-status; got != 0 {
		t.Errorf("status %d\n%s", got, errs.until(t, ""))
	}
}

// state returns the state of project shop.
func state(t *testing.T, client http.Client) string {
	t.Helper()
	res, err := client.Get("http://localhost/v1/projects/shop")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var got struct{ State, Problem string }
	if err = json.NewDecoder(res.Body).Decode(&got); err != nil || got.State == "broken" {
		t.Fatalf("%+v, %v", got, err)
	}
	return got.State
}
