package escape

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
)

func networkAttacks() []Attack {
	return []Attack{
		{Name: "network/anything without a proxy", Brief: true, Make: func(s *Suite) {
			var touched []net.Listener
			targets := []string{
				"tcp 1.1.1.1:53", "tcp 169.254.169.254:80", "tcp 192.168.0.1:80", "tcp 10.0.0.1:443", "udp 8.8.8.8:53",
				"tcp [fd00:ec2::254]:80", "tcp [2606:4700::1111]:443",
			}
			abstract := "@escapetest-" + rand.Text()
			for network, address := range map[string]string{"tcp4": "127.0.0.1:0", "unix": abstract} {
				l, err := (&net.ListenConfig{}).Listen(s.Context(), network, address)
				if err != nil {
					s.Fatal(err)
				}
				touched = append(touched, l)
				targets = append(targets, network+" "+l.Addr().String())
			}
			r := s.open(nil)
			r.attack("network", targets...)
			for _, l := range touched {
				s.checkUntouched(l)
				_ = l.Close()
			}
			r.Works()
		}},
		{Name: "network/other hosts at the proxy's port", Brief: true, Make: func(s *Suite) {
			r, _ := s.openProxied(egress.Config{})
			if r == nil {
				return
			}
			out, _, err := r.Sh(`printf %s "${HTTP_PROXY##*:}"`)
			port, convErr := strconv.ParseUint(out, 10, 16)
			if err != nil || convErr != nil {
				s.Fatalf("the proxy's port is %q, %v", out, err)
			}
			other := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, randomByte(), randomByte(), 2}), uint16(port))
			l, err := (&net.ListenConfig{}).Listen(s.Context(), "tcp4", other.String())
			if err != nil {
				s.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			r.attack("connect", "tcp "+other.String())
			r.Works()
		}},
		{Name: "network/an allowed name that leads to a private address", Brief: true, Make: func(s *Suite) {
			var dialled atomic.Int64
			private := privateNames{}
			var rules []egress.Rule
			for i, address := range []string{
				"127.0.0.1", "10.0.0.1", "192.168.0.1", "169.254.169.254", "::1", "fd00:ec2::254",
				"::ffff:127.0.0.1",
			} {
				name := fmt.Sprintf("name%d.example.com", i)
				private[name] = netip.MustParseAddr(address)
				rules = append(rules, egress.Rule{Host: name})
			}
			r, _ := s.openProxied(egress.Config{Allow: rules, Resolver: private, Dial: func(context.Context, string, string) (net.Conn, error) {
				dialled.Add(1)
				return nil, errors.New("no host is there")
			}})
			if r == nil {
				return
			}
			for name, address := range private {
				before := dialled.Load()
				if out := r.httpRequest("http://"+name+"/", ""); dialled.Load() != before {
					s.Errorf("ralph's proxy has connected to %s: %s", address, out)
				}
			}
			r.Works()
		}},
		{Name: "network/names and addresses of the host in /etc/hosts", Brief: true, Make: func(s *Suite) {
			r := s.open(nil)
			out, _, err := r.Sh("cat /etc/hosts")
			if err != nil {
				s.Fatal(err)
			}
			addresses, err := net.InterfaceAddrs()
			if err != nil {
				s.Fatal(err)
			}
			words := strings.Fields(out)
			for _, a := range addresses {
				if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && slices.Contains(words, ip.IP.String()) {
					s.Errorf("the host's address %s is known", ip.IP)
				}
			}
			for _, name := range []string{"host.containers.internal", "host.docker.internal"} {
				if slices.Contains(words, name) {
					s.Errorf("the host is known as %s", name)
				}
			}
		}},
	}
}

func attackNetwork(a *attempt, targets []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	attackConnect(a, targets)
	for _, resolver := range []string{"", "8.8.8.8:53"} {
		r := net.Resolver{PreferGo: true}
		if resolver != "" {
			r.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, resolver)
			}
		}
		found, err := r.LookupHost(ctx, "c2VjcmV0.example.com")
		if err == nil {
			a.report("look up a name:", found)
		}
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			a.report("the network has", i.Name)
		}
	}
}

// privateNames is a resolver of an attacker, with private addresses.
type privateNames map[string]netip.Addr

func (p privateNames) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return []netip.Addr{p[strings.TrimSuffix(host, ".")]}, nil
}

// openProxied opens a sandbox with a proxy. It returns nil if the provider does not use ralph's proxy.
func (s *Suite) openProxied(c egress.Config) (*Room, *egress.Proxy) {
	s.Helper()
	if c := s.Provider.Capabilities(); !c.Egress || c.OwnEgress {
		s.NotHere()
		return nil, nil
	}
	proxy, err := egress.New(c)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = proxy.Close() })
	dir, err := os.MkdirTemp("", "escape-egress-") // the path of TempDir is too long for a socket
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket, err := proxy.Listen(filepath.Join(dir, "e"))
	if err != nil {
		s.Fatal(err)
	}
	s.Own(socket, filepath.Dir(socket), dir)
	return s.open(func(spec *sandboxes.Spec) { spec.Egress = socket }), proxy
}

// httpRequest makes an HTTP request from inside, and returns the answer's header and body.
func (r *Room) httpRequest(url, body string, header ...string) string {
	r.Helper()
	var out bytes.Buffer
	exit, err := r.Exec(r.Bounded(), sandboxes.Command{
		Argv: r.attackArgv("ask", append([]string{url}, header...)...), Stdin: strings.NewReader(body), Stdout: &out, Stderr: &out,
	})
	if err != nil || !exit.OK() {
		r.Errorf("ask %s: %+v, %v\n%s", url, exit, err, &out)
	}
	return out.String()
}

// attackAsk sends standard input with POST, or a GET if it is empty, and prints the answer.
func attackAsk(a *attempt, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	body, err := io.ReadAll(a.in)
	if err != nil {
		a.report(err)
	}
	method := http.MethodGet
	if len(body) > 0 {
		method = http.MethodPost
	}
	q, err := http.NewRequestWithContext(ctx, method, args[0], bytes.NewReader(body))
	if err != nil {
		a.report(err)
		return
	}
	for _, h := range args[1:] {
		name, value, _ := strings.Cut(h, ": ")
		q.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		_, _ = fmt.Fprintln(a.out, "error:", err)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = fmt.Fprintln(a.out, answer.Status, answer.Header)
	_, _ = io.Copy(a.out, answer.Body)
}

// attackConnect connects to each "NETWORK ADDRESS".
func attackConnect(a *attempt, targets []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, target := range targets {
		var network, address string
		_, _ = fmt.Sscan(target, &network, &address)
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			_ = c.Close()
		}
		a.expectError("connect to "+target, err)
	}
}

func randomByte() byte {
	var b [1]byte
	_, _ = rand.Read(b[:]) // it never fails
	return b[0]
}

// checkUntouched reports a connection to a listener on the host.
func (s *Suite) checkUntouched(l net.Listener) {
	s.Helper()
	_ = l.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Now())
	if c, err := l.Accept(); err == nil {
		_ = c.Close()
		s.Errorf("the sandbox has connected to %s of the host", l.Addr())
	}
}
