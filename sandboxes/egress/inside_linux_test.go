package egress_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/sandboxes/egress/forward"
)

// inside simulates a sandbox: it starts a forwarder in an empty network, installs resolv.conf, and runs a command. It
// returns the command's exit status.
func inside(socket string, argv []string) int {
	if err := insideErr(socket, argv); err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode()
		}
		fmt.Fprintln(os.Stderr, "inside:", err)
		return 125
	}
	return 0
}

func insideErr(socket string, argv []string) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	f, err := forward.New(ctx, forward.Config{Socket: socket})
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	conf := filepath.Join(os.Getenv("HOME"), "resolv.conf")
	if err := os.WriteFile(conf, []byte(forward.ResolvConf), 0o600); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	target, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return err
	}
	if err := unix.Mount(conf, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount resolv.conf: %w", err)
	}
	if argv[0] == "fetch" {
		err = fetch(argv[1:])
	} else {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		err = cmd.Run()
	}
	cancel(nil)
	return errors.Join(err, <-done)
}

// fetch is a program that ignores proxy variables.
func fetch(urls []string) error {
	c := &http.Client{Transport: &http.Transport{Proxy: nil}}
	defer c.CloseIdleConnections()
	for _, u := range urls {
		res, err := c.Get(u)
		if err != nil {
			fmt.Printf("%s: %v\n", u, err)
			continue
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		fmt.Printf("%s: %d %s %v\n", u, res.StatusCode, bytes.TrimSpace(body), err)
	}
	return nil
}

// run runs a command in a separate network, whose only egress is the rig's.
func (r *rig) run(t testing.TB, env []string, argv ...string) (stdout string, err error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, argv...)
	cmd.Env = append([]string{
		insideVariable + "=" + r.socket, "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GORACE=atexit_sleep_ms=0",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
	}, env...)
	cmd.Dir = t.TempDir()
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	err = cmd.Run()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, &errs)
	}
	return out.String(), err
}

// world returns a rig with a site on port 80, one on port 443, and an endpoint.
func world(t testing.TB) *rig {
	t.Helper()
	hello := func(w http.ResponseWriter, q *http.Request) {
		if strings.HasSuffix(q.URL.Path, "/info/refs") { // a git repository
			fmt.Fprint(w, strings.Repeat("1", 40), "\trefs/heads/main\n")
			return
		}
		fmt.Fprint(w, "hello ", q.Host, " ", q.Header.Get("Authorization") != "")
	}
	plain := httptest.NewServer(http.HandlerFunc(hello))
	t.Cleanup(plain.Close)
	secure, roots := service(t, http.HandlerFunc(hello))
	net := newInternet()
	net.host("example.com", somewhere, 80, plain.Listener.Addr().String())
	net.host("example.com", somewhere, 443, secure)
	net.host("example.com", somewhere, 9418, say(t, "hello\n"))
	return newRig(t, egress.Config{
		Allow:     []egress.Rule{{Host: "example.com", Ports: []int{80, 443, 9418}}},
		Endpoints: []egress.Endpoint{{Name: "api", Upstream: "https://example.com", Secret: fixed(secret)}},
		Resolver:  net, Dial: net.dial, Roots: roots,
	})
}

// A program that ignores proxy variables reaches allowed hosts by name, and nothing else.
func TestTransparent(t *testing.T) {
	t.Parallel()
	r := world(t)
	out, err := r.run(t, nil, "fetch",
		"http://example.com/", "http://elsewhere.test/", "https://elsewhere.test/", "http://93.184.215.14/",
		"http://169.254.169.254/latest/meta-data", "http://[2606:2800::1]/", r.URL("api")+"/v1", "http://localhost/",
	)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, want := range []string{
		"200 hello example.com false", "403 ralph's sandbox refuses this connection: not-allowed", "tls: access denied",
		"network is unreachable", "network is unreachable", "network is unreachable", "200 hello example.com true",
		"http://localhost/: Get",
	} {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Errorf("want %q, in\n%s", want, out)
		}
	}
	r.wantRefused(t, "not-allowed elsewhere.test:80", "not-allowed elsewhere.test:443")
}

// Real programs resolve names and connect in different ways.
func TestRealPrograms(t *testing.T) {
	t.Parallel()
	const node = `
const https = require("https"), http = require("http"), dns = require("dns");
const show = (name) => (res) => { res.resume(); res.on("end", () => console.log(name, res.statusCode)); };
http.get("http://example.com/", show("http")).on("error", (e) => console.log("http", e.code));
https.get("https://example.com/", { rejectUnauthorized: false }, show("https")).on("error", (e) => console.log("https", e.code));
dns.resolve4("example.com", (err, all) => console.log("dns", err ? err.code : all.length));
`
	for name, tt := range map[string]struct {
		argv []string
		env  []string
		want []string // all lines, sorted
	}{
		"node": {argv: []string{"node", "-e", node}, want: []string{"dns 1", "http 200", "https 200"}},
		"curl, transparent": {
			argv: []string{"curl", "-sSk", "--noproxy", "*", "http://example.com/", "https://example.com/"},
			env:  forward.Env(), want: []string{"hello example.com falsehello example.com false"},
		},
		"curl, by the variables": {
			argv: []string{"curl", "-sSk", "http://example.com/", "https://example.com/"},
			env:  forward.Env(), want: []string{"hello example.com falsehello example.com false"},
		},
		"curl, an address": {
			argv: []string{"sh", "-c", "curl -sS -o /dev/null -w '%{http_code}\n' http://169.254.169.254/"},
			env:  forward.Env(), want: []string{"403"},
		},
		"git": {
			argv: []string{"git", "-c", "http.sslVerify=false", "ls-remote", "https://example.com/repo.git"},
			want: []string{strings.Repeat("1", 40) + "\trefs/heads/main"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(tt.argv[0]); err != nil {
				t.Fatalf("this test needs %s: %v", tt.argv[0], err)
			}
			r := world(t)
			tt.env = append(tt.env, "TMPDIR="+t.TempDir())
			out, err := r.run(t, tt.env, tt.argv...)
			if err != nil {
				t.Error(err)
			}
			got := slices.Sorted(slices.Values(strings.Split(strings.TrimSpace(out), "\n")))
			if !slices.Equal(got, tt.want) {
				t.Errorf("it says %q, want %q (refused %q)", got, tt.want, r.refused())
			}
		})
	}
}

// The secret is neither in the sandbox's environment nor in anything that it can read.
func TestInsideHoldsNoSecret(t *testing.T) {
	t.Parallel()
	r := world(t)
	out, err := r.run(t, forward.Env(), "sh", "-c",
		"cat /proc/$PPID/environ /proc/$PPID/cmdline /etc/resolv.conf; env; curl -sS -D- "+r.URL("api")+"/")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "nameserver 127.0.0.1") || !strings.Contains(out, "hello example.com true") {
		t.Errorf("output:\n%s", out)
	}
	if strings.Contains(out, secret) {
		t.Errorf("the secret is in it:\n%s", out)
	}
}

// A process in place of the forwarder gains nothing: the proxy makes the decisions.
func TestForwarderIsNotTrusted(t *testing.T) {
	t.Parallel()
	r := world(t)
	for _, line := range []string{
		"connect elsewhere.test:443", "endpoint 1", "endpoint -1", "endpoint", "connect", "plan x", "secret", "", "proxy x",
		"connect example.com:22", "connect 127.0.0.1:80", "connect localhost:80",
	} {
		if c, err := r.open(t, line); err == nil {
			t.Errorf("%q was let through: %v", line, c)
		}
	}
	c, err := r.open(t, "plan")
	if err != nil {
		t.Fatal(err)
	}
	var plan map[string]any
	if err := json.NewDecoder(c).Decode(&plan); err != nil || len(plan) != 2 {
		t.Errorf("the plan is %v, %v", plan, err)
	}
}

func TestForwarderErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		c    forward.Config
		want string
	}{
		"no socket":      {forward.Config{}, "no socket to forward to"},
		"nobody there":   {forward.Config{Socket: filepath.Join(t.TempDir(), "none.sock")}, "ask the proxy for its plan"},
		"something else": {forward.Config{Dial: func(context.Context) (net.Conn, error) { return stranger(), nil }}, "not a line of this protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := forward.New(t.Context(), tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

// stranger returns a connection to a peer that is not a proxy.
func stranger() net.Conn {
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		_, _ = there.Read(make([]byte, 100))
		_, _ = io.WriteString(there, "220 mail.example.com ESMTP\r\n")
	}()
	return here
}
