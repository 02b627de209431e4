package web

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/internal/web/dashboard"
)

// usesTLS reports whether the browser uses TLS, to this server or to a proxy in front of it. In the second case a form's
// Origin shows it.
func usesTLS(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://")
}

// wantsPage reports whether the request is from a browser that opens a page or sends a form, rather than from a program.
func wantsPage(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.HasPrefix(r.URL.Path, "/v1/")
}

// register adds the pages, their streams of changes, and the login.
func (a api) register(mux *http.ServeMux, pages *dashboard.Pages, l login) {
	pages.Register(mux)
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, r *http.Request) { a.changes(w, r, pages, "") })
	mux.HandleFunc("GET /p/{project}/live", func(w http.ResponseWriter, r *http.Request) { a.changes(w, r, pages, r.PathValue("project")) })
	if l.key == nil {
		return
	}
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) { pages.LoginPage(w, r.FormValue("next"), false) })
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		next := dashboard.Local(r.PostFormValue("next"))
		if !l.isToken(r.PostFormValue("token")) {
			l.refused.note(r)
			pages.LoginPage(w, next, true)
			return
		}
		value, err := l.begin(r)
		if err != nil {
			http.Error(w, "nobody can log in now; try again soon", http.StatusServiceUnavailable)
			return
		}
		http.SetCookie(w, sessionOf(r, value))
		http.Redirect(w, r, next, http.StatusSeeOther)
	})
	mux.HandleFunc("GET /logout", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusSeeOther) })
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		if l.end(r) != nil {
			http.Error(w, "you are still logged in; try again soon", http.StatusServiceUnavailable)
			return
		}
		http.SetCookie(w, sessionOf(r, ""))
		http.Redirect(w, r, "/login", http.StatusSeeOther)
	})
}

// open reports whether the path needs no token because it shows no project data.
func open(path string) bool {
	return path == "/healthz" || path == "/readyz" || path == "/login" || dashboard.Public(path)
}

// toLogin redirects a browser to the login page, with the requested address as the next one. The action of a form is not
// performed: after the login, its address redirects to the page of the form.
func toLogin(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
}

// changesEvery is the interval of checks for changes.
const changesEvery = time.Second

// changes is the stream of a page: it sends the page's state whenever it changes.
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
		if retry.Sleep(r.Context(), changesEvery) != nil {
			return
		}
		now, err = pages.Changes(r.Context(), project)
	}
}
