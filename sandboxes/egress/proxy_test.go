package egress_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/egress"
)

const (
	somewhere = "93.184.215.14"
	elsewhere = "93.184.215.15"
)

func TestConnectToAnAllowedHost(t *testing.T) {
	t.Parallel()
	net := newInternet()
	net.host("git.example.com", somewhere, 22, say(t, "hello\n"))
	r := newRig(t, egress.Config{
		Allow: []egress.Rule{{Host: "git.example.com", Ports: []int{22}}}, Resolver: net, Dial: net.dial,
	})
	c, err := r.open(t, "connect GIT.example.com.:22")
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	if got := line(t, in); got != "hello" {
		t.Errorf("the server, which speaks first, says %q", got)
	}
	if _, err := io.WriteString(c, "and back\n"); err != nil {
		t.Fatal(err)
	}
	if got := line(t, in); got != "and back" {
		t.Errorf("got %q", got)
	}
	// The end of one direction is forwarded, and the other direction stays open until it ends, too.
	if err := c.(*watched).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
		t.Errorf("at the end %q, %v", rest, err)
	}
	r.wantRefused(t)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		target string
		points []string // addresses of evil.example.com, which is allowed
		allow  []egress.Rule
		want   string // reason host:port
	}{
		"nothing allowed":            {target: "example.com:443", want: "not-allowed example.com:443"},
		"another host":               {target: "other.example.com:443", allow: []egress.Rule{{Host: "example.com"}}, want: "not-allowed other.example.com:443"},
		"another port":               {target: "evil.example.com:8443", allow: []egress.Rule{{Host: "evil.example.com"}}, want: "not-allowed evil.example.com:8443"},
		"the domain of a star":       {target: "example.com:443", allow: []egress.Rule{{Host: "*.example.com"}}, want: "not-allowed example.com:443"},
		"a name that ends alike":     {target: "badexample.com:443", allow: []egress.Rule{{Host: "*.example.com"}}, want: "not-allowed badexample.com:443"},
		"an address":                 {target: "93.184.215.14:443", allow: []egress.Rule{{Host: "example.com"}}, want: "not-allowed 93.184.215.14:443"},
		"an address, IPv6":           {target: "[2606:2800::1]:443", allow: []egress.Rule{{Host: "example.com"}}, want: "not-allowed 2606:2800::1:443"},
		"an address in hexadecimal":  {target: "0x7f000001:443", want: "malformed :0"},
		"an address as a number":     {target: "2130706433:443", want: "malformed :0"},
		"an address with a zone":     {target: "[fe80::1%lo]:443", want: "malformed :0"},
		"metadata":                   {target: "169.254.169.254:80", allow: []egress.Rule{{Host: "example.com"}}, want: "not-allowed 169.254.169.254:80"},
		"metadata, allowed":          {target: "169.254.169.254:81", allow: []egress.Rule{{Host: "169.254.169.254", Ports: []int{81}, AllowPrivate: true}}, want: "address-refused 169.254.169.254:81"},
		"a name for metadata":        {target: "evil.example.com:443", points: []string{"169.254.169.254"}, allow: []egress.Rule{{Host: "evil.example.com", AllowPrivate: true}}, want: "address-refused evil.example.com:443"},
		"a name for loopback":        {target: "evil.example.com:443", points: []string{"127.0.0.1", "::1"}, allow: []egress.Rule{{Host: "evil.example.com"}}, want: "address-refused evil.example.com:443"},
		"a name for a private place": {target: "evil.example.com:443", points: []string{"10.0.0.1", "192.168.1.1", "fd12::1"}, allow: []egress.Rule{{Host: "evil.example.com"}}, want: "address-refused evil.example.com:443"},
		"a mapped address":           {target: "evil.example.com:443", points: []string{"::ffff:127.0.0.1"}, allow: []egress.Rule{{Host: "evil.example.com"}}, want: "address-refused evil.example.com:443"},
		"a translated address":       {target: "evil.example.com:443", points: []string{"64:ff9b::a9fe:a9fe"}, allow: []egress.Rule{{Host: "evil.example.com"}}, want: "address-refused evil.example.com:443"},
		"no address":                 {target: "evil.example.com:443", allow: []egress.Rule{{Host: "evil.example.com"}}, want: "not-resolved evil.example.com:443"},
		"nobody there":               {target: "evil.example.com:443", points: []string{somewhere}, allow: []egress.Rule{{Host: "evil.example.com"}}, want: "not-connected evil.example.com:443"},
		"no port":                    {target: "example.com", want: "malformed :0"},
		"no such port":               {target: "example.com:65536", want: "malformed :0"},
		"a name with a blank":        {target: "exa mple.com:443", want: "malformed :0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			net := newInternet()
			if tt.points != nil {
				net.point("evil.example.com", tt.points...)
			}
			r := newRig(t, egress.Config{Allow: tt.allow, Resolver: net, Dial: net.dial})
			reason, _, _ := strings.Cut(tt.want, " ")
			_, err := r.open(t, "connect "+tt.target)
			if err == nil || err.Error() != "no "+reason {
				t.Errorf("over the socket %v, want no %s", err, reason)
			}
			r.wantRefused(t, tt.want)
			lookups, dialled := net.seen()
			if reason != "not-connected" && len(dialled) > 0 {
				t.Errorf("connected to %q", dialled)
			}
			if (reason == "not-allowed" || reason == "malformed") && len(lookups) > 0 {
				t.Errorf("looked up %q, which carries it out of the sandbox", lookups)
			}
		})
	}
}

// A name is looked up once per connection, and the checked address is the one that is connected to.
func TestRebinding(t *testing.T) {
	t.Parallel()
	net := newInternet()
	net.host("example.com", somewhere, 9418, say(t, "outside\n"))
	net.host("inside", "127.0.0.1", 9418, say(t, "inside\n"))
	net.point("example.com", somewhere, "127.0.0.1") // both addresses at the same time
	r := newRig(t, egress.Config{
		Allow: []egress.Rule{{Host: "example.com", Ports: []int{9418}}}, Resolver: net, Dial: net.dial,
	})
	c, err := r.open(t, "connect example.com:9418")
	if err != nil {
		t.Fatal(err)
	}
	if got := line(t, bufio.NewReader(c)); got != "outside" {
		t.Errorf("connected to the one %s", got)
	}
	net.point("example.com", "127.0.0.1")
	if _, err := r.open(t, "connect example.com:9418"); err == nil {
		t.Error("connected after the name had moved inside")
	}
	lookups, dialled := net.seen()
	if len(lookups) != 2 || !slices.Equal(dialled, []string{somewhere + ":9418"}) {
		t.Errorf("looked up %q, connected to %q", lookups, dialled)
	}
}

func TestPrivateOnlyWhenTheRuleSaysSo(t *testing.T) {
	t.Parallel()
	net := newInternet()
	net.host("registry.corp.example", "10.1.2.3", 9418, say(t, "hello\n"))
	r := newRig(t, egress.Config{
		Allow: []egress.Rule{{Host: "registry.corp.example", Ports: []int{9418}, AllowPrivate: true}}, Resolver: net, Dial: net.dial,
	})
	if _, err := r.open(t, "connect registry.corp.example:9418"); err != nil {
		t.Error(err)
	}
}

// Many hosts share an address: TLS must name the host that was allowed.
func TestTLSNamesTheHost(t *testing.T) {
	t.Parallel()
	address, roots := service(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))
	for name, tt := range map[string]struct {
		port int
		sni  string
		want []string
	}{
		"the same":             {443, "example.com", nil},
		"in capitals":          {443, "EXAMPLE.com", nil},
		"another":              {443, "elsewhere.test", []string{"other-name example.com:443"}},
		"another, on any port": {8443, "elsewhere.test", []string{"other-name example.com:8443"}},
		"none":                 {443, "", []string{"not-tls example.com:443"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			net := newInternet()
			net.host("example.com", somewhere, tt.port, address)
			r := newRig(t, egress.Config{
				Allow: []egress.Rule{{Host: "example.com", Ports: []int{tt.port}}}, Resolver: net, Dial: net.dial,
			})
			c, err := r.open(t, fmt.Sprintf("connect example.com:%d", tt.port))
			if err != nil {
				t.Fatal(err)
			}
			insecure := tt.sni == ""
			err = tls.Client(c, &tls.Config{ServerName: tt.sni, RootCAs: roots, InsecureSkipVerify: insecure}).Handshake()
			if (err == nil) != (tt.want == nil) {
				t.Errorf("handshake: %v", err)
			}
			r.wantRefused(t, tt.want...)
		})
	}
}

func TestPort443IsForTLS(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{"another protocol": "SSH-2.0-x\r\n", "like TLS": "\x16\x03\x01\x00\x04abcd"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			net := newInternet()
			net.host("example.com", somewhere, 443, say(t, ""))
			r := newRig(t, egress.Config{Allow: []egress.Rule{{Host: "example.com"}}, Resolver: net, Dial: net.dial})
			c, err := r.open(t, "connect example.com:443")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c, first); err != nil {
				t.Fatal(err)
			}
			if got, _ := io.ReadAll(c); len(got) > 0 {
				t.Errorf("the server got it and said %q", got)
			}
			r.wantRefused(t, "not-tls example.com:443")
		})
	}
}

// Programs that use proxies send CONNECT, and full http:// URLs.
func TestHTTPProxy(t *testing.T) {
	t.Parallel()
	address, roots := service(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "secure "+r.Host) }))
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Host, " ", r.URL, " ", r.Header.Get("Proxy-Authorization"), r.Header.Get("Proxy-Connection"))
	}))
	t.Cleanup(plain.Close)
	net := newInternet()
	net.host("example.com", somewhere, 443, address)
	net.host("example.com", somewhere, 80, plain.Listener.Addr().String())
	net.host("example.com", somewhere, 8080, plain.Listener.Addr().String())
	r := newRig(t, egress.Config{
		Allow: []egress.Rule{{Host: "example.com", Ports: []int{80, 443, 8080}}}, Resolver: net, Dial: net.dial,
	})
	c := r.client(t, "proxy", roots)
	for url, want := range map[string]string{
		"https://example.com/":          "secure example.com",
		"http://example.com/a?b=c":      "example.com /a?b=c ",
		"http://example.com:8080/x%2Fy": "example.com:8080 /x%2Fy ",
	} {
		if status, body := get(t, c, url); status != 200 || body != want {
			t.Errorf("%s: %d %q, want %q", url, status, body, want)
		}
	}
	if status, body := get(t, c, "http://elsewhere.test/"); status != 403 || !strings.Contains(body, "no rule allows this host") {
		t.Errorf("elsewhere: %d %q", status, body)
	}
	res, err := c.Get("https://elsewhere.test/")
	if err == nil {
		_ = res.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("elsewhere by CONNECT: %v", err)
	}
	r.wantRefused(t, "not-allowed elsewhere.test:80", "not-allowed elsewhere.test:443")
}

// A program that ignores proxy variables connects to port 80 of a name. Each request must be for that name.
func TestPort80(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host) }))
	t.Cleanup(plain.Close)
	net := newInternet()
	net.host("example.com", somewhere, 80, plain.Listener.Addr().String())
	net.host("hidden.example.com", somewhere, 80, plain.Listener.Addr().String())
	r := newRig(t, egress.Config{
		Allow: []egress.Rule{{Host: "example.com"}}, Resolver: net, Dial: net.dial,
	})
	c := r.client(t, "connect example.com:80", nil)
	if status, body := get(t, c, "http://example.com/"); status != 200 || body != "example.com" {
		t.Errorf("%d %q", status, body)
	}
	if status, body := get(t, c, "http://hidden.example.com/"); status != 403 {
		t.Errorf("a request for another host on the same connection: %d %q", status, body)
	}
	r.wantRefused(t, "other-name example.com:80")

	// The same through CONNECT, as some programs do.
	raw, err := r.open(t, "proxy")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(raw, "CONNECT example.com:80 HTTP/1.1\r\nHost: example.com:80\r\n\r\n"+
		"GET / HTTP/1.1\r\nHost: example.com\r\n\r\nGET / HTTP/1.1\r\nHost: hidden.example.com\r\n\r\n")
	all, err := io.ReadAll(raw)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(all), "HTTP/1.1 200 OK"); n != 1 || !strings.Contains(string(all), "HTTP/1.1 403 Forbidden") {
		t.Errorf("answers:\n%s", all)
	}
}

func TestSocketIsPrivate(t *testing.T) {
	t.Parallel()
	r := newRig(t, egress.Config{})
	for path, want := range map[string]os.FileMode{r.socket: 0o600, filepath.Dir(r.socket): 0o700} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(r.socket); err == nil {
		t.Error("the socket is there after Close")
	}
	if _, err := r.Listen(t.TempDir()); err == nil {
		t.Error("listens after Close, in an open folder")
	}
}

func TestListenErrors(t *testing.T) {
	t.Parallel()
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ dir, want string }{
		"open to others": {open, "chmod 700"},
		"too long":       {filepath.Join(t.TempDir(), strings.Repeat("x", 120)), "shorter folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := egress.New(egress.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if _, err := p.Listen(tt.dir); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

// A socket left by a crash is replaced.
func TestListenAfterACrash(t *testing.T) {
	t.Parallel()
	r := newRig(t, egress.Config{})
	dir := filepath.Join(t.TempDir(), "e")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(r.socket, filepath.Join(dir, "egress.sock")); err != nil {
		t.Fatal(err)
	}
	newRigIn(t, dir)
}

func newRigIn(t *testing.T, dir string) {
	t.Helper()
	p, err := egress.New(egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Listen(dir); err != nil {
		t.Error(err)
	}
}
