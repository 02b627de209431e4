package web

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/web/dashboard"
)

// sessionTime is how long a browser stays logged in.
const sessionTime = 7 * 24 * time.Hour

// sessionCookie is the name of the cookie of a browser that has logged in.
const sessionCookie = "ralph-session"

// sessions knows browsers that have logged in. What a cookie holds is signed with the token: nothing is kept here, and
// another token ends all sessions.
type sessions struct {
	key []byte // hash of the token; nil: no token is needed
}

func newSessions(token string) sessions {
	if token == "" {
		return sessions{}
	}
	hash := sha256.Sum256([]byte(token))
	return sessions{key: hash[:]}
}

// right compares a token in constant time.
func (s sessions) right(token string) bool {
	hash := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(hash[:], s.key) == 1
}

func (s sessions) sign(until string) string {
	sum := hmac.New(sha256.New, s.key)
	_, _ = sum.Write([]byte("session " + until))
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// in reports a request of a browser that has logged in.
func (s sessions) in(r *http.Request, now time.Time) bool {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil || s.key == nil {
		return false
	}
	until, signature, _ := strings.Cut(cookie.Value, ".")
	end, err := strconv.ParseInt(until, 10, 64)
	return err == nil && now.Unix() < end && hmac.Equal([]byte(signature), []byte(s.sign(until)))
}

// cookie is the session's cookie; it ends at once when until is zero. Where a browser came by TLS, it never goes without.
func (s sessions) cookie(r *http.Request, until time.Time) *http.Cookie {
	c := &http.Cookie{
		Name: sessionCookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: byTLS(r), MaxAge: -1,
	}
	if !until.IsZero() {
		text := strconv.FormatInt(until.Unix(), 10)
		c.Value, c.MaxAge = text+"."+s.sign(text), int(sessionTime.Seconds())
	}
	return c
}

// byTLS reports a browser that speaks TLS, with this server or a proxy before it: then a form's origin says so.
func byTLS(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://")
}

// wantsPage reports a browser that goes to a page, and not a program.
func wantsPage(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.HasPrefix(r.URL.Path, "/v1/")
}

// register adds the pages, what they hear, and the login.
func (a api) register(mux *http.ServeMux, pages *dashboard.Pages, s sessions) {
	pages.Register(mux)
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, r *http.Request) { a.changes(w, r, pages, "") })
	mux.HandleFunc("GET /p/{project}/live", func(w http.ResponseWriter, r *http.Request) { a.changes(w, r, pages, r.PathValue("project")) })
	if s.key == nil {
		return
	}
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) { pages.LoginPage(w, r.FormValue("next"), false) })
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		next := dashboard.Local(r.PostFormValue("next"))
		if !s.right(r.PostFormValue("token")) {
			pages.LoginPage(w, next, true)
			return
		}
		http.SetCookie(w, s.cookie(r, time.Now().Add(sessionTime)))
		http.Redirect(w, r, next, http.StatusSeeOther)
	})
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, s.cookie(r, time.Time{}))
		http.Redirect(w, r, "/login", http.StatusSeeOther)
	})
}

// open reports what needs no token: nothing of the projects is there.
func open(path string) bool {
	return path == "/healthz" || path == "/readyz" || path == "/login" || dashboard.Public(path)
}

// toLogin sends a browser to the login, and from there to where it wanted to go.
func toLogin(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
}

// changesEvery is how often a page hears of changes at most.
const changesEvery = time.Second

// changes is the stream of a page: its state, whenever that is another.
func (a api) changes(w http.ResponseWriter, r *http.Request, pages *dashboard.Pages, project string) {
	first, err := pages.Changes(r.Context(), project)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many streams", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	s := stream{w: w, control: http.NewResponseController(w), patience: a.WriteTime}
	ticker := time.NewTicker(changesEvery)
	defer ticker.Stop()
	var sent []byte
	for idle, now := 0, first; err == nil; idle++ {
		switch {
		case !bytes.Equal(now, sent):
			err, sent, idle = s.send("data: %s\n\n", now), now, 0
		case idle%keepAlive == keepAlive-1:
			err = s.send(": on\n\n")
		}
		if err != nil || s.control.Flush() != nil {
			return
		}
		select {
		case <-ticker.C:
			now, err = pages.Changes(r.Context(), project)
		case <-r.Context().Done():
			return
		}
	}
}
