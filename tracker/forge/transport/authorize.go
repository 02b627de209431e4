package transport

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/ralph-pool/ralph/tracker"
)

const userAgent = "ralph"

// bearer sets the token as a bearer token.
func bearer(r *http.Request, t tracker.Token) { r.Header.Set("Authorization", "Bearer "+t.Secret) }

// authorizer adds the token to requests to the forge's own host only, since an answer may redirect elsewhere. It renews a
// rejected token once.
type authorizer struct {
	next   http.RoundTripper
	apiURL *url.URL
	source tracker.TokenSource
}

func (a *authorizer) RoundTrip(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.Header.Set("User-Agent", userAgent)
	if a.source == nil || !sameHost(a.apiURL, r.URL) {
		out.Header.Del("Authorization")
		return a.next.RoundTrip(out)
	}
	t, err := a.source.Token(r.Context())
	if err != nil {
		if r.Context().Err() != nil {
			return nil, err
		}
		return nil, tokenFailure(r, err)
	}
	bearer(out, t)
	resp, err := a.next.RoundTrip(out)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	renewer, ok := a.source.(tracker.TokenRenewer)
	if !ok || (r.Body != nil && r.Body != http.NoBody && r.GetBody == nil) {
		return resp, nil
	}
	renewer.Renew(t)
	renewed, err := a.source.Token(r.Context())
	if err != nil || renewed.Secret == t.Secret {
		return resp, nil //nolint:nilerr // the refusal tells more than "no other token"
	}
	again, err := copyRequest(r)
	if err != nil {
		return nil, err
	}
	again.Header.Set("User-Agent", userAgent)
	bearer(again, renewed)
	return a.next.RoundTrip(again)
}

// sameHost reports whether both have the same scheme, host and port.
func sameHost(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// copyRequest copies a request for another try, with its body from the start.
func copyRequest(r *http.Request) (*http.Request, error) {
	out := r.Clone(r.Context())
	if r.Body == nil || r.Body == http.NoBody {
		return out, nil
	}
	if r.GetBody == nil {
		return nil, fmt.Errorf("repeat %s %s: its body cannot be read twice", r.Method, r.URL.Path)
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, fmt.Errorf("repeat %s %s: %w", r.Method, r.URL.Path, err)
	}
	out.Body = body
	return out, nil
}
