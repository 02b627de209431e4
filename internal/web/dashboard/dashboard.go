// Package dashboard renders what a service does as pages for a browser: a board of issues for each project, its runs with
// their checks, logs and diffs, and charts.
//
// The pages are whole without scripts; a small script keeps them up to date. Everything in them is text of agents and
// issues: html/template escapes it, and the policy of each page forbids code and style that is not a file of this package.
package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"time"

	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// Service is what the pages show; *service.Service is one.
type Service interface {
	// What it is doing now.
	Projects() []service.Status
	Status(name string) (service.Status, error)
	Board(ctx context.Context, name string) (service.Board, error)
	Waits(ctx context.Context, name string) ([]journal.Parked, error)
	Refused() string
	Draining() bool
	// What it has done.
	Runs(ctx context.Context, name string, q journal.Query) ([]journal.Record, error)
	Totals(ctx context.Context, name string, since time.Time) ([]journal.Total, error)
	Diff(ctx context.Context, name string, r journal.Record, limit int) (diff []byte, cut bool, err error)
	// What people may ask of it.
	Stop(ctx context.Context, name, key, run string) error
	Retry(ctx context.Context, name, key, by string, fresh bool) error
	Fix(ctx context.Context, name, key, by, text string) error
	Pause(name string, paused bool) error
}

var _ Service = (*service.Service)(nil)

// Config is the set-up of the pages. Service is required.
type Config struct {
	Service Service
	Live    *Live  // default: one that hears nothing
	Version string // of the program
	Login   bool   // people log in, so that they may log out
	Form    string // what each form has to send; default: random
}

// Pages are the pages. Their methods are safe for concurrent use.
type Pages struct {
	Config
	templates *template.Template
	assets    map[string]asset
	form      string // what each form must send: no other site can read it
	boards    kept[seen]
	totals    kept[summed]
	searches  chan struct{} // one for each read of a log
	steps     stepIndex
}

// asset is a file that pages refer to by a path that changes when the file does.
type asset struct {
	path, kind string
	data       []byte
}

//go:embed assets
var files embed.FS

// New makes the pages. It fails only when an embedded file is wrong.
func New(c Config) (*Pages, error) {
	if c.Live == nil {
		c.Live = NewLive()
	}
	p := &Pages{Config: c, form: cmp.Or(c.Form, rand.Text()), assets: map[string]asset{}, searches: make(chan struct{}, 4)}
	for name, kind := range map[string]string{
		"style.css": "text/css; charset=utf-8",
		"live.js":   "text/javascript; charset=utf-8",
		"icon.svg":  "image/svg+xml",
	} {
		data, err := fs.ReadFile(files, path.Join("assets", name))
		if err != nil {
			return nil, err
		}
		hash := sha256.Sum256(data)
		p.assets[name] = asset{path: "/assets/" + hex.EncodeToString(hash[:6]) + "/" + name, kind: kind, data: data}
	}
	var err error
	p.templates, err = template.New("").Funcs(p.functions()).ParseFS(files, "assets/*.html")
	return p, err
}

// Register adds the pages to a server. Its other handlers are more specific than these.
func (p *Pages) Register(mux *http.ServeMux) {
	for pattern, show := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /{$}":                         p.overview,
		"GET /p/{project}":                 p.board,
		"GET /p/{project}/runs":            p.runs,
		"GET /p/{project}/runs/{run}":      p.run,
		"GET /p/{project}/runs/{run}/log":  p.log,
		"GET /p/{project}/runs/{run}/diff": p.diff,
		"GET /p/{project}/charts":          p.charts,
	} {
		mux.HandleFunc(pattern, p.page(show))
	}
	for _, pattern := range []string{"GET /p/{project}/{rest...}", "GET /p/{$}"} {
		mux.HandleFunc(pattern, p.page(func(http.ResponseWriter, *http.Request) error { return errNoPage }))
	}
	for path, do := range map[string]func(*http.Request) error{
		"pause": p.pause, "resume": p.resume,
		"issues/{key}/stop": p.stop, "issues/{key}/retry": p.retry, "issues/{key}/fresh": p.fresh, "issues/{key}/fix": p.fix,
	} {
		mux.HandleFunc("POST /p/{project}/"+path, p.page(p.act(do)))
		// The answer to a refused form stands at this address, to which a browser comes back.
		mux.HandleFunc("GET /p/{project}/"+path, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, projectPath(r.PathValue("project")), http.StatusSeeOther)
		})
	}
	for _, a := range p.assets {
		mux.HandleFunc("GET "+a.path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", a.kind)
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			_, _ = w.Write(a.data)
		})
	}
}

// Public reports a path that holds nothing of the projects: the login page needs it.
func Public(path string) bool {
	return len(path) > len(assetsPath) && path[:len(assetsPath)] == assetsPath
}

const assetsPath = "/assets/"

// policy forbids everything that a page does not need: nothing inline, nothing from elsewhere, no frame around it.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; " +
	"img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// secure sets the headers of a page. A browser must say where a form comes from, so that other sites' are refused.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/html; charset=utf-8")
}

// page answers with what show writes, or with its error.
func (p *Pages) page(show func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		if err := show(w, r); err != nil {
			status := statusOf(err)
			p.render(w, status, "error.html", view{
				Title:   http.StatusText(status),
				Project: p.known(r.PathValue("project")),
				Model:   service.OneLine(err),
			})
		}
	}
}

// known is a project's name, if there is one of that name.
func (p *Pages) known(name string) string {
	if _, err := p.Service.Status(name); err != nil {
		return ""
	}
	return name
}

var (
	errNoRun  = errors.New("there is no such run")
	errNoPage = errors.New("there is no such page")
	errForm   = errors.New("the form is not one of this service, or of before it was started again: load the page again")
	errBusy   = errors.New("too many logs are being read; try again in a moment")
)

func statusOf(err error) int {
	switch {
	case errors.Is(err, service.ErrNoProject), errors.Is(err, tracker.ErrNotFound), errors.Is(err, fs.ErrNotExist),
		errors.Is(err, errNoRun), errors.Is(err, errNoPage):
		return http.StatusNotFound
	case errors.Is(err, service.ErrNotOpen), errors.Is(err, service.ErrAway), errors.Is(err, journal.ErrAway), errors.Is(err, errBusy):
		return http.StatusServiceUnavailable
	case errors.Is(err, errForm):
		return http.StatusForbidden
	}
	return http.StatusConflict
}

// view is what every template gets.
type view struct {
	Title   string
	Project string // empty: the page is of no project
	Tab     string // of the project
	Live    string // where the page hears of changes; empty: it does not
	Digest  string // of what is live in the page
	Outside bool   // the reader has not logged in
	Refresh int    // seconds after which a browser loads the page again, if it hears of no changes; 0: never
	Model   any
}

// render writes a page whole, or an error.
func (p *Pages) render(w http.ResponseWriter, status int, name string, v view) {
	var b bytes.Buffer
	if err := p.templates.ExecuteTemplate(&b, name, v); err != nil {
		http.Error(w, fmt.Sprintf("page %s: %v", name, err), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// LoginPage asks for the token; next is where to go then. wrong says that one was sent that is not right.
func (p *Pages) LoginPage(w http.ResponseWriter, next string, wrong bool) {
	secure(w.Header())
	status := http.StatusOK
	if wrong {
		status = http.StatusUnauthorized
	}
	p.render(w, status, "login.html", view{Title: "Log in", Outside: true, Model: map[string]any{"Next": Local(next), "Wrong": wrong}})
}

// Local is a path of this server, whatever a form says: "/" for everything else.
func Local(to string) string {
	for i, c := range []byte(to) {
		if i == 0 && c != '/' || i == 1 && c == '/' || c == '\\' || c < ' ' || c == 0x7f {
			return "/"
		}
	}
	if to == "" {
		return "/"
	}
	return to
}
