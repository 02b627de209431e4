//go:build linux

package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/e2e/mockmodel"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/sandboxes/egress/forward"
)

// egressSocket is the variable with the proxy's socket for TestEgressInside, which then runs as a program in the sandbox.
const egressSocket = "RALPH_TEST_EGRESS_SOCKET"

// TestEgressInside runs in the sandbox of the tests below: it starts a forwarder and the command after "--".
func TestEgressInside(t *testing.T) {
	socket := os.Getenv(egressSocket)
	if socket == "" {
		t.Parallel()
		return // as a test it does nothing
	}
	_, argv, _ := strings.Cut(strings.Join(os.Args, "\x00"), "\x00--\x00")
	code, err := runInside(socket, strings.Split(argv, "\x00"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "inside:", err)
		code = 125
	}
	os.Exit(code)
}

func runInside(socket string, argv []string) (int, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	f, err := forward.New(ctx, forward.Config{Socket: socket})
	if err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	conf := filepath.Join(os.Getenv("HOME"), "resolv.conf")
	target, err := filepath.EvalSymlinks("/etc/resolv.conf")
	err = errors.Join(err, os.WriteFile(conf, []byte(forward.ResolvConf), 0o600),
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount(conf, target, "", unix.MS_BIND, ""))
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	cancel(nil)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), <-done
	}
	return 0, errors.Join(err, <-done)
}

// login is one way to authenticate.
type login struct {
	agent   agents.Agent
	program string
	model   string
	env     []string                    // the user's environment
	files   map[string]string           // files in the user's home
	header  func(http.Header) (ok bool) // whether a request has the credential
}

// logins returns the ways to authenticate with the secret.
func logins(secret string) map[string]login {
	has := func(name, value string) func(http.Header) bool {
		return func(h http.Header) bool { return slices.Equal(h.Values(name), []string{value}) }
	}
	bearer := has("Authorization", "Bearer "+secret)
	later := time.Now().Add(time.Hour).UnixMilli()
	chatgpt := `{"auth_mode":"chatgpt","OPENAI_API_KEY":null,"tokens":{"id_token":"id-` + secret + `","access_token":"` +
		secret + `","refresh_token":"rt-` + secret + `","account_id":"account-1"}}`
	return map[string]login{
		"claude by key": {
			agent: agents.Claude{}, program: "claude", model: "sonnet",
			env: []string{"ANTHROPIC_API_KEY=" + secret}, header: has("X-Api-Key", secret),
		},
		"claude by subscription token": {
			agent: agents.Claude{}, program: "claude", model: "sonnet",
			env: []string{"CLAUDE_CODE_OAUTH_TOKEN=" + secret}, header: bearer,
		},
		"claude by bearer token": {
			agent: agents.Claude{}, program: "claude", model: "sonnet",
			env: []string{"ANTHROPIC_AUTH_TOKEN=" + secret}, header: bearer,
		},
		"claude by login": {
			agent: agents.Claude{}, program: "claude", model: "sonnet", header: bearer,
			files: map[string]string{".claude/.credentials.json": fmt.Sprintf(
				`{"claudeAiOauth":{"accessToken":%q,"refreshToken":"rt-%s","expiresAt":%d}}`, secret, secret, later)},
		},
		"codex by key": {
			agent: agents.Codex{}, program: "codex", model: "gpt-5.5",
			env: []string{"OPENAI_API_KEY=" + secret}, header: bearer,
		},
		"codex by login": {
			agent: agents.Codex{}, program: "codex", model: "gpt-5.5",
			files:  map[string]string{".codex/auth.json": chatgpt},
			header: func(h http.Header) bool { return bearer(h) && has("Chatgpt-Account-Id", "account-1")(h) },
		},
	}
}

// The real programs work an issue in a network with nothing but ralph's proxy, and have only placeholders.
func TestRealAgentsBehindEgress(t *testing.T) {
	t.Parallel()
	if os.Getenv("RALPH_E2E_AGENTS") == "off" {
		t.Skip("RALPH_E2E_AGENTS=off")
	}
	// Generated here, so that it is in no file: the sandbox contains the test binary, too.
	secret := "sk-real-" + rand.Text()
	for name, l := range logins(secret) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			behindEgress(t, l, secret)
		})
	}
}

func behindEgress(t *testing.T, l login, secret string) {
	userHome := t.TempDir()
	for path, text := range l.files {
		path = filepath.Join(userHome, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	service, err := agents.FindService(l.agent, agents.User{Env: l.env, Home: userHome})
	if err != nil {
		t.Fatal(err)
	}
	model := newService(t, l.header)
	// The test's internet has one server, with a certificate for example.com.
	service.Upstream = "https://example.com/v1"
	if l.program == "claude" {
		service.Upstream = "https://example.com"
	}
	proxy, socket := listenFor(t, service, model)

	repo, home := newRepository(t), t.TempDir()
	const placeholder = "ralph-holds-the-credential"
	env, args := l.agent.Describe().Endpoint.ProxySettings(service, proxy.URL(service.Name), placeholder)
	inv, err := l.agent.Invocation(agents.Request{
		Prompt:  "Work on issue fix-it.",
		Options: agents.Options{Model: l.model, SkipPermissions: true, Env: env, Args: args},
	})
	if err != nil {
		t.Fatal(err)
	}
	out := runAgentInside(t, string(repo), home, socket, inv)

	if tip := repo.git(t, "log", "-1", "--format=%s"); tip == "start" {
		t.Errorf("no commit was made; the agent said\n%s", out)
	}
	model.verify(t)
	refused, _ := proxy.Refusals()
	for _, e := range refused {
		t.Errorf("refused %s %s:%d %s", e.Reason, e.Host, e.Port, e.Detail)
	}
	if bytes.Contains(out, []byte(secret)) {
		t.Error("the credential is in the output")
	}
	for _, dir := range []string{home, string(repo)} {
		nowhereBelow(t, dir, secret)
	}
}

// listenFor starts the proxy with this one endpoint.
func listenFor(t *testing.T, s agents.Service, model *service) (proxy *egress.Proxy, socket string) {
	t.Helper()
	routes := make([]egress.Route, len(s.Routes))
	for i, r := range s.Routes {
		routes[i] = egress.Route(r)
	}
	proxy, err := egress.New(egress.Config{
		Endpoints: []egress.Endpoint{{
			Name: s.Name, Upstream: s.Upstream, Header: s.Header, Format: s.Format, Secret: s.Secret, Routes: routes, Model: true,
		}},
		Resolver: model, Dial: model.dial, Roots: model.roots,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	if socket, err = proxy.Listen(filepath.Join(t.TempDir(), "e")); err != nil {
		t.Fatal(err)
	}
	return proxy, socket
}

// runAgentInside runs an agent in its own network and returns its output.
func runAgentInside(t *testing.T, dir, home, socket string, inv agents.Invocation) []byte {
	t.Helper()
	bin, err := filepath.Abs("../.tools/npm/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, inv.Argv[0])); err != nil {
		t.Fatalf("the real %s is not there (%v); run e2e/agents/install.sh, or set RALPH_E2E_AGENTS=off to do without", inv.Argv[0], err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), awaitLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, append([]string{"-test.run=^TestEgressInside$", "--"}, inv.Argv...)...)
	cmd.Dir = dir
	cmd.Env = slices.Concat([]string{
		egressSocket + "=" + socket, "PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8",
		"GORACE=" + os.Getenv("GORACE"),
	}, forward.Env(), gitEnv(), inv.Env)
	cmd.Stdin = strings.NewReader(inv.Stdin)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", inv.Argv[0], err, out)
	}
	return out
}

// service is the real service: the mock model with TLS, which requires the credential.
type service struct {
	*mockmodel.Server
	address string
	roots   *x509.CertPool

	mu      sync.Mutex
	asked   int      // guarded by mu
	without []string // guarded by mu; requests without the credential
}

func newService(t *testing.T, has func(http.Header) bool) *service {
	t.Helper()
	s := &service{Server: mockmodel.New(mockmodel.Options{Scenario: "commit"}), roots: x509.NewCertPool()}
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked++
		if !has(r.Header) || r.ProtoMajor != 2 {
			s.without = append(s.without, fmt.Sprintf("%s %s %s %v", r.Proto, r.Method, r.URL, r.Header))
		}
		s.mu.Unlock()
		s.ServeHTTP(w, r)
	}))
	web.EnableHTTP2 = true
	web.StartTLS()
	t.Cleanup(func() { web.Close(); _ = s.Close() })
	s.roots.AddCert(web.Certificate())
	s.address = web.Listener.Addr().String()
	return s
}

func (s *service) verify(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == 0 {
		t.Error("the service was never asked")
	}
	for _, r := range s.without {
		t.Errorf("without the credential, or not over HTTP/2: %s", r)
	}
}

const documented = "93.184.215.14"

// LookupNetIP implements egress.Resolver: all names have one public address.
func (*service) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr(documented)}, nil
}

func (s *service) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if address != documented+":443" {
		return nil, fmt.Errorf("nothing is at %s", address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, s.address)
}

// nowhereBelow fails the test if a file contains the text.
func nowhereBelow(t *testing.T, dir, text string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		all, err := io.ReadAll(f)
		if bytes.Contains(all, []byte(text)) {
			t.Errorf("%s holds the credential", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
