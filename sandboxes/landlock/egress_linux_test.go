package landlock_test

import (
	"context"
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
)

// oneAddress is a resolver with the same public address for every name.
type oneAddress struct{}

func (oneAddress) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
}

// TestProxyIsTheOnlyEgress reaches allowed hosts through the proxy, and an endpoint that adds the credential.
func TestProxyIsTheOnlyEgress(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "served "+r.Host+" "+r.Header.Get("Authorization"))
	}))
	defer server.Close()
	proxy, err := egress.New(egress.Config{
		Allow: []egress.Rule{{Host: "allowed.test", Ports: []int{80}}}, Resolver: oneAddress{},
		Endpoints: []egress.Endpoint{{
			Name: "model", Upstream: "http://model.test", AllowPrivate: true,
			Secret: func(context.Context) (string, error) { return "the-key-outside", nil },
			Format: "Bearer %s",
		}},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = proxy.Close() }()
	dir, err := os.MkdirTemp("", "landlock-egress-") //nolint:usetesting // a test's own folder is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	socket, err := proxy.Listen(filepath.Join(dir, "e"))
	if err != nil {
		t.Fatal(err)
	}
	endpoint := proxy.URL("model")
	for url, want := range map[string]string{
		"http://allowed.test/":                      "200 served allowed.test",
		"http://refused.test/":                      "403 ",
		endpoint + "/v1":                            "200 served model.test",
		"http://" + server.Listener.Addr().String(): "fetch ",
	} {
		said := inside(t, sandboxes.Spec{Egress: socket}, "fetch", url)[""]
		if !strings.HasPrefix(said, want) || strings.HasPrefix(want, "fetch") && strings.Contains(said, "served") || strings.Contains(said, "the-key-outside") {
			t.Errorf("%s gives %q, want %q", url, said, want)
		}
	}
	if said := inside(t, sandboxes.Spec{}, "fetch", "http://127.0.0.1:15380")[""]; !strings.Contains(said, "permission denied") {
		t.Errorf("without a socket there is %q", said)
	}
}
