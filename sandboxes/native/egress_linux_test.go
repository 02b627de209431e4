package native_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/sandboxes/egress/forward"
	"github.com/ralph-pool/ralph/sandboxes/native"
)

// fetching makes this program, inside a sandbox, get the URL in the next argument.
const fetching = "native-test-fetch"

// fetch uses no proxy, only names and addresses.
func fetch(url string) int {
	client := http.Client{Transport: &http.Transport{Proxy: nil}}
	answer, err := client.Get(url)
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	defer func() { _ = answer.Body.Close() }()
	fmt.Print(answer.StatusCode, " ")
	_, _ = io.Copy(os.Stdout, answer.Body)
	return 0
}

// oneAddress is a resolver with the same public address for every name.
type oneAddress struct{}

func (oneAddress) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
}

func TestProxyIsTheOnlyEgress(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "served "+r.Host)
	}))
	defer server.Close()
	proxy, err := egress.New(egress.Config{
		Allow: []egress.Rule{{Host: "allowed.test", Ports: []int{80}}}, Resolver: oneAddress{},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = proxy.Close() }()
	box, socket := behind(t, proxy)
	for url, want := range map[string]string{
		"http://allowed.test/":                      "200 served allowed.test",
		"http://refused.test/":                      "403 ", // or an error: the refusal may arrive before the request was sent
		"http://1.1.1.1/":                           "error:",
		"http://" + server.Listener.Addr().String(): "error:",
	} {
		var out bytes.Buffer
		if _, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"/srv/fetch", fetching, url}, Stdout: &out, Stderr: &out}); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.HasPrefix(got, want) && (strings.HasPrefix(want, "200") || strings.Contains(got, "served")) {
			t.Errorf("%s gives %q, want %q", url, &out, want)
		}
	}
	var out bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", `test ! -e "$1" && env`, "sh", socket}, Stdout: &out})
	if err != nil || !exit.OK() || !strings.Contains(out.String(), "HTTPS_PROXY=") {
		t.Errorf("the socket is visible, or the proxy's variables are not: %+v, %v, %s", exit, err, &out)
	}
	out.Reset()
	_, err = box.Exec(t.Context(), sandboxes.Command{Argv: []string{"cat", "/etc/resolv.conf"}, Stdout: &out})
	if err != nil || out.String() != forward.ResolvConf {
		t.Errorf("names are resolved by %q, %v", &out, err)
	}
}

// behind opens a sandbox with the proxy as its network, in which /srv/fetch is this program.
func behind(t *testing.T, proxy *egress.Proxy) (box sandboxes.Sandbox, socket string) {
	t.Helper()
	// The path of t.TempDir is too long for a socket.
	dir, err := os.MkdirTemp("", "native-egress-") //nolint:usetesting // as said
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket, err = proxy.Listen(filepath.Join(dir, "e"))
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	box, err = native.New(native.Config{}).Open(t.Context(), sandboxes.Spec{
		Run: "egress-" + dir, Worktree: t.TempDir(), Egress: socket,
		Mounts: []sandboxes.Mount{{Host: self, Inside: "/srv/fetch", ReadOnly: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return box, socket
}

// A rule for this host's loopback applies to its port, also for programs that bypass the proxy for loopback.
func TestOwnLoopback(t *testing.T) {
	t.Parallel()
	serve := func() (port int, url string) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "served "+r.Host) }))
		t.Cleanup(server.Close)
		return server.Listener.Addr().(*net.TCPAddr).Port, server.URL
	}
	port, allowed := serve()
	_, refused := serve()
	proxy, err := egress.New(egress.Config{Allow: []egress.Rule{{Host: "localhost", Ports: []int{port}, AllowPrivate: true}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	box, _ := behind(t, proxy)
	for url, want := range map[string]string{
		allowed: "200 served 127.0.0.1:", strings.Replace(allowed, "127.0.0.1", "localhost", 1): "200 served localhost:", refused: "error:",
	} {
		var out bytes.Buffer
		if _, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"/srv/fetch", fetching, url}, Stdout: &out, Stderr: &out}); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s gives %q, want %q", url, &out, want)
		}
	}
}
