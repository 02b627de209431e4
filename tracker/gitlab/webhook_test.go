package gitlab

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

func TestDeliveries(t *testing.T) {
	t.Parallel()
	const (
		body   = `{"object_kind":"issue","project":{"path_with_namespace":"Acme/tools/shop"}}`
		secret = "0123456789abcdef"
	)
	key := []byte("01234567890123456789012345678901")
	signing := "whsec_" + base64.StdEncoding.EncodeToString(key)
	now := time.Unix(1_790_000_000, 0)
	sign := func(key []byte, id string, at int64, body string) string {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%d.%s", id, at, body)
		return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	good := sign(key, "d1", now.Unix(), body)
	at := fmt.Sprint(now.Unix())
	early, late := now.Unix()-301, now.Unix()+301
	for _, c := range []struct {
		name, secret, body string
		headers            map[string]string
		want               error
		id                 string
		wake               bool
	}{
		{"token", secret, body, map[string]string{"X-Gitlab-Token": secret, "Idempotency-Key": "k"}, nil, "k", true},
		{"of no matter", secret, body, map[string]string{"X-Gitlab-Token": secret, "X-Gitlab-Event": "Wiki Page Hook"}, nil, "", false},
		{"another token", secret, body, map[string]string{"X-Gitlab-Token": secret + "x"}, tracker.ErrForged, "", false},
		{"no token", secret, body, nil, tracker.ErrForged, "", false},
		{"no secret", "", body, nil, tracker.ErrForged, "", false},
		{"no event", secret, body, map[string]string{"X-Gitlab-Token": secret, "X-Gitlab-Event": ""}, tracker.ErrNoDelivery, "", false},
		{"no JSON", secret, "x", map[string]string{"X-Gitlab-Token": secret}, tracker.ErrNoDelivery, "", false},
		{"another project", secret, `{"project":{"path_with_namespace":"acme/shop"}}`, map[string]string{"X-Gitlab-Token": secret}, tracker.ErrOtherProject, "", false},

		{"signed", signing, body, map[string]string{"webhook-id": "d1", "webhook-timestamp": at, "webhook-signature": good}, nil, "d1", true},
		{"one of two signatures", signing, body, map[string]string{"webhook-id": "d1", "webhook-timestamp": at, "webhook-signature": "v1,AAAA " + good}, nil, "d1", true},
		{"another id", signing, body, map[string]string{"webhook-id": "d2", "webhook-timestamp": at, "webhook-signature": good}, tracker.ErrForged, "", false},
		{"no id", signing, body, map[string]string{"webhook-timestamp": at, "webhook-signature": sign(key, "", now.Unix(), body)}, tracker.ErrForged, "", false},
		{"another time", signing, body, map[string]string{"webhook-id": "d1", "webhook-timestamp": fmt.Sprint(early), "webhook-signature": good}, tracker.ErrForged, "", false},
		{"too old", signing, body, map[string]string{"webhook-id": "d1", "webhook-timestamp": fmt.Sprint(early), "webhook-signature": sign(key, "d1", early, body)}, tracker.ErrStale, "", false},
		{"of the future", signing, body, map[string]string{"webhook-id": "d1", "webhook-timestamp": fmt.Sprint(late), "webhook-signature": sign(key, "d1", late, body)}, tracker.ErrStale, "", false},
		{"another version", signing, body, map[string]string{"webhook-id": "d1", "webhook-timestamp": at, "webhook-signature": "v2" + good[2:]}, tracker.ErrForged, "", false},
		{"the token in place of the signature", signing, body, map[string]string{"X-Gitlab-Token": signing}, tracker.ErrForged, "", false},
		{"a signing token that is none", "whsec_!", body, map[string]string{"webhook-id": "d1", "webhook-timestamp": at, "webhook-signature": sign(nil, "d1", now.Unix(), body)}, tracker.ErrForged, "", false},
		{"an empty signing token", "whsec_", body, map[string]string{"webhook-id": "d1", "webhook-timestamp": at, "webhook-signature": sign(nil, "d1", now.Unix(), body)}, tracker.ErrForged, "", false},
	} {
		h := http.Header{}
		h.Set("X-Gitlab-Event", "Issue Hook")
		for name, value := range c.headers {
			h.Set(name, value)
		}
		got, err := Descriptor().Webhook(tracker.Delivery{
			Header: h, Body: []byte(c.body), Secret: []byte(c.secret), Project: "https://gitlab.example/acme/tools/shop.git", Now: now,
		})
		if !errors.Is(err, c.want) || got.Wake != c.wake || got.ID != c.id {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

func FuzzDelivery(f *testing.F) {
	f.Add("Issue Hook", "v1,AAAA", "1", []byte(`{}`))
	f.Fuzz(func(t *testing.T, event, signature, at string, body []byte) {
		h := http.Header{}
		for name, value := range map[string]string{"X-Gitlab-Event": event, "webhook-id": "x", "webhook-timestamp": at, "webhook-signature": signature} {
			h.Set(name, value)
		}
		d := tracker.Delivery{Header: h, Body: body, Secret: []byte("whsec_AAAAAAAAAAAAAAAAAAAAAA=="), Project: "https://gitlab.example/acme/shop"}
		if n, err := readDelivery(d); err == nil {
			t.Errorf("accepted: %+v", n)
		}
	})
}
