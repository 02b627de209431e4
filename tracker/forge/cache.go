package forge

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"

	"github.com/rs/zerolog"
)

// conditional remembers answers and asks whether they still hold: an unchanged page costs no rate limit and no body. An
// answer is only ever given to the identity it was made for.
type conditional struct {
	next   http.RoundTripper
	store  *store
	source Source
	home   *url.URL
	log    zerolog.Logger
}

func (c *conditional) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || r.Header.Get("Range") != "" || intentOf(r.Context()).tail > 0 || !sameHost(c.home, r.URL) {
		return c.next.RoundTrip(r)
	}
	name, err := c.name(r)
	if err != nil {
		return nil, err
	}
	old, known := c.store.get(name)
	known = known && !intentOf(r.Context()).fresh
	if into := intentOf(r.Context()).into; known && into != nil {
		known = into(old.Body) == nil // else kept by another version of ralph, which wanted less of it
	}
	out := r.Clone(r.Context())
	if intentOf(r.Context()).fresh {
		out.Header.Set("Cache-Control", "no-cache") // for what is between
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
		return old.revive(r, resp), nil
	}
	c.remember(name, resp)
	return resp, nil
}

// name is the entry's: the address, the wanted form and the identity.
func (c *conditional) name(r *http.Request) (string, error) {
	h := sha256.New()
	for _, part := range []string{r.URL.String(), r.Header.Get("Accept")} {
		_, _ = io.WriteString(h, part+"\x00") // a hash takes everything
	}
	if c.source != nil {
		t, err := c.source.Token(r.Context())
		if err != nil {
			if r.Context().Err() != nil {
				return "", err
			}
			return "", tokenFailure(r, err)
		}
		who := t.Identity
		if who == "" {
			who = t.Secret
		}
		sum := sha256.Sum256([]byte("ralph identity\x00" + who))
		_, _ = h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (c *conditional) remember(name string, resp *http.Response) {
	e := entry{ETag: resp.Header.Get("ETag"), LastModified: resp.Header.Get("Last-Modified")}
	if resp.StatusCode != http.StatusOK || (e.ETag == "" && e.LastModified == "") || !isJSON(resp.Header) {
		return
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return // it is in memory: cannot happen
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	e.ContentType, e.Body = resp.Header.Get("Content-Type"), body
	e.Link = resp.Header.Get("Link")
	if err := c.store.put(name, e); err != nil {
		c.log.Warn().Err(err).Msg("keep an answer of the forge")
	}
}

// revive makes the whole answer from an entry and the forge's word that it still holds.
func (e entry) revive(r *http.Request, unchanged *http.Response) *http.Response {
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
