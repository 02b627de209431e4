package web_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/ralph-pool/ralph/internal/service/servicetest"
	"github.com/ralph-pool/ralph/internal/web"
	"github.com/ralph-pool/ralph/internal/web/browsertest"
	"github.com/ralph-pool/ralph/pool/journal"
)

const token = "0123456789abcdef"

// locked returns a server that needs the token.
func locked(t *testing.T) server {
	t.Helper()
	return start(t, func(c *web.Config) { c.Token = token }, servicetest.New(t, "shop", 1))
}

// login submits the login form and returns the response without following it.
func (s server) login(values url.Values, headers ...string) *http.Response {
	s.t.Helper()
	return s.send("/login", values, headers...)
}

// send submits a form without following the response.
func (s server) send(path string, values url.Values, headers ...string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(values.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// A browser logs in with the token. Its cookie is valid until the session ends, and no other value is.
func TestLogin(t *testing.T) {
	t.Parallel()
	s := locked(t)
	s.watch.Until(t, "shop", journal.EventEnded, 1)
	if res := s.do("GET", "/p/shop?state=ready", "Accept: text/html"); res.Request.URL.Path != "/login" || res.Request.URL.Query().Get("next") != "/p/shop?state=ready" {
		t.Errorf("a page leads to %s", res.Request.URL)
	}
	// A user whose session has ended is sent to the login by the next button, and then back to the page.
	for path, page := range map[string]string{"/p/shop/pause": "/p/shop", "/p/shop/issues/task-1/stop": "/p/shop", "/logout": "/"} {
		login := "/login?next=" + url.QueryEscape(path)
		if res := s.send(path, nil, "Accept: text/html"); res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != login {
			t.Errorf("%s leads to %s %s", path, res.Status, res.Header.Get("Location"))
		}
		if res := s.do("GET", path, "Authorization: Bearer "+token); res.StatusCode != http.StatusOK || res.Request.URL.Path != page {
			t.Errorf("%s leads back to %s: %s", path, res.Request.URL, res.Status)
		}
	}
	login, err := io.ReadAll(s.do("GET", "/login").Body)
	if err != nil || !bytes.Contains(login, []byte(`type="password"`)) || bytes.Contains(login, []byte(`name="form"`)) || bytes.Contains(login, []byte("shop")) {
		t.Errorf("who has not logged in sees %s, %v", login, err)
	}
	if res := s.login(url.Values{"token": {token + "x"}}); res.StatusCode != http.StatusUnauthorized || len(res.Cookies()) > 0 {
		t.Errorf("a wrong token: %s, %v", res.Status, res.Cookies())
	}
	for next, want := range map[string]string{"/p/shop": "/p/shop", "//evil.example": "/", "https://evil.example": "/", "": "/"} {
		if res := s.login(url.Values{"token": {token}, "next": {next}}); res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != want {
			t.Errorf("next %q: %s to %q", next, res.Status, res.Header.Get("Location"))
		}
	}
	res := s.login(url.Values{"token": {token}})
	cookie := res.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Secure || cookie.Domain != "" || cookie.MaxAge <= 0 || strings.Contains(cookie.Value, token) {
		t.Errorf("cookie %s", res.Header.Get("Set-Cookie"))
	}
	if res := s.login(url.Values{"token": {token}}, "Origin: https://"+strings.TrimPrefix(s.url, "http://")); !res.Cookies()[0].Secure {
		t.Errorf("behind a proxy with TLS: %s", res.Header.Get("Set-Cookie"))
	}
	for value, want := range map[string]int{
		cookie.Value: 200, "": 401, cookie.Value[1:]: 401, cookie.Value + "x": 401, strings.ToLower(cookie.Value): 401, token: 401,
	} {
		for _, path := range []string{"/p/shop", "/v1/projects", "/live", "/metrics"} {
			if path == "/live" && want == 200 {
				continue // the stream does not end
			}
			if res := s.do("GET", path, "Cookie: "+cookie.Name+"="+value); res.StatusCode != want {
				t.Errorf("%s with the cookie %q: %s, want %d", path, value, res.Status, want)
			}
		}
	}
	for _, headers := range [][]string{{"Origin: http://evil.example"}, {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}} {
		if res := s.do("POST", "/p/shop/pause", append(headers, "Cookie: "+cookie.Name+"="+cookie.Value)...); res.StatusCode != http.StatusForbidden {
			t.Errorf("a form of another site: %s", res.Status)
		}
		if res := s.login(url.Values{"token": {token}}, headers...); res.StatusCode != http.StatusForbidden {
			t.Errorf("a login of another site: %s", res.Status)
		}
	}
	if res := s.do("POST", "/p/shop/pause", "Cookie: "+cookie.Name+"="+cookie.Value); res.StatusCode != http.StatusForbidden {
		t.Errorf("a form that no page has: %s", res.Status)
	}
	other := start(t, func(c *web.Config) { c.Token = token + "2" }, servicetest.New(t, "shop", 0))
	if res := other.do("GET", "/v1/projects", "Cookie: "+cookie.Name+"="+cookie.Value); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("with another token: %s", res.Status)
	}
	if res := s.do("GET", "/assets/none"); res.StatusCode != http.StatusNotFound {
		t.Errorf("an asset that is not there: %s", res.Status)
	}
}

// A log-out ends the session on the server: copies of its cookie are invalid and its streams end. Other sessions continue. A
// session does not outlive the server.
func TestLogout(t *testing.T) {
	t.Parallel()
	s := locked(t)
	in := func() string {
		cookie := s.login(url.Values{"token": {token}}).Cookies()[0]
		return "Cookie: " + cookie.Name + "=" + cookie.Value
	}
	mine, other := in(), in()
	first := s.watch.Until(t, "shop", journal.EventEnded, 1)
	for _, path := range []string{"/live", "/p/shop/live"} {
		stream, also := s.do("GET", path, mine), s.do("GET", path, other)
		for _, res := range []*http.Response{stream, also} {
			if _, err := io.ReadFull(res.Body, make([]byte, 6)); err != nil {
				t.Fatal(err)
			}
		}
		if res := s.send("/logout", nil, mine); res.StatusCode != http.StatusSeeOther || res.Cookies()[0].MaxAge >= 0 {
			t.Errorf("log-out: %s, %v", res.Status, res.Cookies())
		}
		if res := s.do("GET", "/v1/projects", mine); res.StatusCode != http.StatusUnauthorized {
			t.Fatalf("the cookie after the log-out: %s", res.Status)
		}
		if _, err := io.Copy(io.Discard, stream.Body); err != nil {
			t.Errorf("%s of the session that has ended: %v", path, err)
		}
		_ = also.Body.Close()
		if res := s.do("GET", "/p/shop/runs/"+first.Run, other); res.StatusCode != http.StatusOK {
			t.Errorf("another session: %s", res.Status)
		}
		mine = in()
	}
	again := in()
	if s.login(url.Values{"token": {token}}, again); s.do("GET", "/v1/projects", again).StatusCode != http.StatusUnauthorized {
		t.Error("a session goes on after its browser has begun another")
	}
	anew := start(t, func(c *web.Config) { c.Token = token }, servicetest.New(t, "shop", 0))
	if res := anew.do("GET", "/v1/projects", other); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("at another server with the same token: %s", res.Status)
	}
}

// Without a token there is no login.
func TestNoLogin(t *testing.T) {
	t.Parallel()
	s := start(t, nil, servicetest.New(t, "shop", 0))
	if res := s.do("GET", "/login"); res.StatusCode != http.StatusNotFound {
		t.Errorf("%s", res.Status)
	}
	if res := s.do("GET", "/", "Accept: text/html"); res.StatusCode != http.StatusOK {
		t.Errorf("the first page: %s", res.Status)
	}
}

// A stream of changes takes a slot for streams, and ends with its client.
func TestChangesAreBounded(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *web.Config) { c.Streams = 1 }, servicetest.New(t, "shop", 0))
	first := s.do("GET", "/live")
	begin := make([]byte, 6)
	if _, err := first.Body.Read(begin); err != nil || !bytes.Equal(begin, []byte("data: ")) {
		t.Errorf("%q, %v", begin, err)
	}
	if res := s.do("GET", "/live"); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %s", res.Status)
	}
	if res := s.do("GET", "/p/none/live"); res.StatusCode != http.StatusNotFound {
		t.Errorf("of no project: %s", res.Status)
	}
	_ = first.Body.Close()
	for s.do("GET", "/p/shop/live").StatusCode != http.StatusOK {
	}
}

// In Chromium: the login leads to the requested page; a run is followed to its end; a comment on its diff makes ralph work
// the issue again; a project is paused; after the log-out nothing is visible.
func TestDashboardInBrowser(t *testing.T) {
	t.Parallel()
	project := servicetest.New(t, "shop", 1)
	project.Wait()
	s := start(t, func(c *web.Config) { c.Token = token }, project)
	begun := s.watch.Until(t, "shop", journal.EventStarted, 1)
	p := browsertest.Open(t).Page(t, browsertest.Look{Width: 1000, Height: 800})
	p.Go(s.url + "/p/shop/runs/" + begun.Run)
	p.Do(chromedp.SendKeys(chromedp.CSS("#token"), token+"\r"))
	p.Until("document.querySelector('.log')")
	if cookies := browsertest.Eval[string](p, "document.cookie"); cookies != "" {
		t.Errorf("a script sees %q", cookies)
	}
	project.Go()
	p.Until("document.querySelector('h1 .badge').textContent === 'succeeded'")
	p.Do(chromedp.Click(chromedp.CSS("a[href$='/diff']")))
	p.Until("document.querySelector('.diff .add a')")
	p.Do(chromedp.Click(chromedp.CSS(".diff .add a")))
	p.Until("document.querySelector('#comment')")
	p.Do(chromedp.SendKeys(chromedp.CSS("#comment"), "Say <more>"), chromedp.Click(chromedp.CSS(".comment button")))
	second := s.watch.Until(t, "shop", journal.EventStarted, 2)
	p.Until("location.pathname === '/p/shop' && document.querySelector('[data-run]')")
	p.Do(chromedp.Click(chromedp.CSS("[aria-label='Pause shop']")))
	p.Until("document.querySelector('h1 .badge').textContent === 'paused'")
	p.Do(chromedp.Click(chromedp.CSS(".logout button")))
	p.Until("document.querySelector('#token')")
	p.Go(s.url + "/p/shop")
	p.Until("document.querySelector('#token')")
	if wrong := p.Wrong(); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
	if hosts := p.Elsewhere(s.url); len(hosts) > 0 {
		t.Errorf("the pages ask %q", hosts)
	}
	project.Go()
	s.watch.Until(t, "shop", journal.EventEnded, 2)
	records, err := project.Store.Find(t.Context(), journal.Query{Run: second.Run})
	if err != nil || len(records) != 1 || records[0].Earlier.Asked == nil || !strings.HasSuffix(records[0].Earlier.Asked.Text, "line 1: Say <more>") {
		t.Errorf("the second run: %v, %v", records, err)
	}
}
