package transport

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport/store"
)

// cachingTransport caches answers and revalidates them: an unchanged page costs neither rate limit nor body. An answer is reused
// only for the identity that requested it.
type cachingTransport struct {
	next   http.RoundTripper
	store  *store.Store
	source tracker.TokenSource
	apiURL *url.URL
	log    *slog.Logger
}

func (c *cachingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || r.Header.Get("Range") != "" || intentOf(r.Context()).tail > 0 || !sameHost(c.apiURL, r.URL) {
		return c.next.RoundTrip(r)
	}
	name, err := c.cacheKey(r)
	if err != nil {
		return nil, err
	}
	old, known := c.store.Get(name)
	known = known && !intentOf(r.Context()).bypassCache
	if check := intentOf(r.Context()).check; known && check != nil {
		known = check(old.Body) == nil // another version of ralph may have cached it with a weaker check
	}
	out := r.Clone(r.Context())
	if intentOf(r.Context()).bypassCache {
		out.Header.Set("Cache-Control", "no-cache") // for proxies
	}
	if known {
		if old.ETag != "" {
			out.Header.Set("If-None-Match", old.ETag)
		} else {
			out.Header.Set("If-Modified-Since", old.LastModified)
		}
	}
	resp, err := c.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	if known && resp.StatusCode == http.StatusNotModified {
		return cachedResponse(old, r, resp), nil
	}
	c.storeAnswer(name, resp)
	return resp, nil
}

// cacheKey returns the cache key: a hash of URL, media type and identity.
func (c *cachingTransport) cacheKey(r *http.Request) (string, error) {
	h := sha256.New()
	for _, part := range []string{r.URL.String(), r.Header.Get("Accept")} {
		_, _ = io.WriteString(h, part+"\x00") // a hash never fails
	}
	if c.source != nil {
		t, err := c.source.Token(r.Context())
		if err != nil {
			if r.Context().Err() != nil {
				return "", err
			}
			return "", tokenFailure(r, err)
		}
		sum := sha256.Sum256([]byte("ralph identity\x00" + cmp.Or(t.Identity, t.Secret)))
		_, _ = h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (c *cachingTransport) storeAnswer(name string, resp *http.Response) {
	e := store.Entry{ETag: resp.Header.Get("ETag"), LastModified: resp.Header.Get("Last-Modified")}
	if resp.StatusCode != http.StatusOK || (e.ETag == "" && e.LastModified == "") || !isJSON(resp.Header) {
		return
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return // cannot happen: the body is in memory
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	e.ContentType, e.Body = resp.Header.Get("Content-Type"), body
	e.Link = resp.Header.Get("Link")
	if err := c.store.Put(name, e); err != nil {
		c.log.Warn("cache an answer of the forge", "error", err)
	}
}

// cachedResponse returns the full answer for a cached entry that the forge reports as unchanged.
func cachedResponse(e store.Entry, r *http.Request, unchanged *http.Response) *http.Response {
	h := unchanged.Header.Clone()
	h.Set("Content-Type", e.ContentType)
	if h.Get("Link") == "" && e.Link != "" {
		h.Set("Link", e.Link)
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: unchanged.Proto,
		ProtoMajor: unchanged.ProtoMajor, ProtoMinor: unchanged.ProtoMinor,
		Header: h, Body: io.NopCloser(bytes.NewReader(e.Body)), ContentLength: int64(len(e.Body)), Request: r,
	}
}
