package gitlab

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// behindProxy serves an instance below /git/lab and rewrites its links to another host.
func behindProxy(t *testing.T, instance string) string {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner, found := strings.CutPrefix(r.URL.RequestURI(), "/git/lab")
		if !found {
			http.NotFound(w, r)
			return
		}
		out, err := http.NewRequestWithContext(r.Context(), r.Method, instance+inner, r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out.Header = r.Header
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		for k, v := range resp.Header {
			w.Header()[k] = v
		}
		if l := resp.Header.Get("Link"); l != "" {
			w.Header().Set("Link", strings.Replace(l, "http://", "https://internal.invalid/", 1))
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	t.Cleanup(func() {
		proxy.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return proxy.URL
}
