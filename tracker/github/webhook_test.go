package github

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"net/http"
	"net/url"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
)

func signed(name string, kind func() hash.Hash, secret, body string) string {
	mac := hmac.New(kind, []byte(secret))
	mac.Write([]byte(body))
	return name + "=" + hex.EncodeToString(mac.Sum(nil))
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	const (
		secret = "It's a Secret to Everybody"
		body   = `{"action":"labeled","repository":{"full_name":"Acme/Shop"}}`
		form   = "application/x-www-form-urlencoded"
	)
	asForm := url.Values{"payload": {body}}.Encode()
	good := signed("sha256", sha256.New, secret, body)
	for _, c := range []struct {
		name, event, signature, kind, body, secret string
		want                                       error
		wake                                       bool
	}{
		{"genuine", "issues", good, "application/json", body, secret, nil, true},
		{"with a character set", "issues", good, "application/json; charset=utf-8", body, secret, nil, true},
		{"as a form", "issue_comment", signed("sha256", sha256.New, secret, asForm), form, asForm, secret, nil, true},
		{"of no matter", "star", good, "application/json", body, secret, nil, false},
		{"ping", "ping", good, "application/json", body, secret, nil, false},
		{"without signature", "issues", "", "application/json", body, secret, tracker.ErrForged, false},
		{"without event", "", good, "application/json", body, secret, tracker.ErrNoDelivery, false},
		{"another secret", "issues", signed("sha256", sha256.New, "x", body), "application/json", body, secret, tracker.ErrForged, false},
		{"another body", "issues", good, "application/json", body + " ", secret, tracker.ErrForged, false},
		{"no secret", "issues", signed("sha256", sha256.New, "", body), "application/json", body, "", tracker.ErrForged, false},
		{"SHA-1", "issues", signed("sha1", sha1.New, secret, body), "application/json", body, secret, tracker.ErrForged, false},
		{"cut", "issues", good[:40], "application/json", body, secret, tracker.ErrForged, false},
		{"only the kind", "issues", "sha256=", "application/json", body, secret, tracker.ErrForged, false},
		{"no JSON", "issues", signed("sha256", sha256.New, secret, "x"), "application/json", "x", secret, tracker.ErrNoDelivery, false},
		{"another project", "issues", signed("sha256", sha256.New, secret, `{"repository":{"full_name":"acme/other"}}`),
			"application/json", `{"repository":{"full_name":"acme/other"}}`, secret, tracker.ErrOtherProject, false},
		{"no project", "issues", signed("sha256", sha256.New, secret, `{}`), "application/json", `{}`, secret, tracker.ErrOtherProject, false},
	} {
		h := http.Header{}
		for name, value := range map[string]string{
			"X-GitHub-Event": c.event, "X-Hub-Signature-256": c.signature, "X-GitHub-Delivery": "72d3162e", "Content-Type": c.kind,
		} {
			h.Set(name, value)
		}
		got, err := Descriptor().Webhook(tracker.Delivery{
			Header: h, Body: []byte(c.body), Secret: []byte(c.secret), Project: "git@github.com:acme/shop.git",
		})
		if !errors.Is(err, c.want) || got.Wake != c.wake || err == nil && got.ID != "72d3162e" {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

// The example in GitHub's documentation.
func TestDocumentedSignature(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	h.Set("X-GitHub-Event", "issues")
	h.Set("X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")
	_, err := readDelivery(tracker.Delivery{Header: h, Body: []byte("Hello, World!"), Secret: []byte("It's a Secret to Everybody"), Project: "https://github.com/acme/shop"})
	if !errors.Is(err, tracker.ErrNoDelivery) { // the signature is valid, but the text is not a payload
		t.Error(err)
	}
}

func FuzzDelivery(f *testing.F) {
	f.Add("issues", "sha256=00", "application/json", []byte(`{}`))
	f.Fuzz(func(t *testing.T, event, signature, kind string, body []byte) {
		h := http.Header{"X-Github-Event": {event}, "X-Hub-Signature-256": {signature}, "Content-Type": {kind}}
		if n, err := readDelivery(tracker.Delivery{Header: h, Body: body, Secret: []byte("0123456789abcdef"), Project: "https://github.com/acme/shop"}); err == nil {
			t.Errorf("accepted: %+v", n)
		}
	})
}
