// Package dashboard renders the state of a service as web pages: for each project a board of issues, its runs with their
// checks, logs and diffs, and charts.
//
// The pages work without scripts; a small script updates them. They contain text of agents and issues, which is untrusted:
// html/template escapes it, and the content security policy of each page allows only code and styles from files of this package.
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
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// Service is the service that the pages show. *service.Service implements it.
type Service interface {
	// Current state.
	Projects() []service.Status
	Status(name string) (service.Status, error)
	Board(ctx context.Context, name string) (service.Board, error)
	Waits(ctx context.Context, name string) ([]journal.Parked, error)
	Refused() string
	Draining() bool
	// History.
	Runs(ctx context.Context, name string, q journal.Query) ([]journal.Record, error)
	Totals(ctx context.Context, name string, since time.Time) ([]journal.Total, error)
	Diff(ctx context.Context, name string, r journal.Record, limit int) (diff []byte, files int, cut bool, err error)
	// Actions of users.
	Stop(ctx context.Context, name, key, run string) error
	Retry(ctx context.Context, name, key, by string, fresh bool) error
	Fix(ctx context.Context, name, key, by, text string) error
	Pause(name string, paused bool, by string) error
}

var _ Service = (*service.Service)(nil)

// Config configures Pages. Service is required.
type Config struct {
	Service Service
	Live    *Live  // default: one without runs
	Version string // version of the program
	Login   bool   // users log in, so pages offer to log out
	Form    string // secret that forms must send, which other sites cannot read; default: random
}

// Pages serves the pages. Its methods are safe for concurrent use.
type Pages struct {
	Config
	templates *template.Template
	assets    map[string]asset
	boards    cache[boardState]
	totals    cache[summed]
	searches  chan struct{} // limits the number of concurrent reads of logs
	steps     stepIndex
}

// asset is a file whose path contains a hash of its content.
type asset struct {
	path, kind string
	data       []byte
}

//go:embed assets
var files embed.FS

// New returns the pages. It fails only if an embedded file is invalid.
func New(c Config) (*Pages, error) {
	if c.Live == nil {
		c.Live = NewLive()
	}
	c.Form = cmp.Or(c.Form, rand.Text())
	p := &Pages{Config: c, assets: map[string]asset{}, searches: make(chan struct{}, 4)}
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

// Register adds the pages to a server, whose other handlers have more specific patterns.
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
		mux.HandleFunc("POST /p/{project}/"+path, p.page(p.formAction(do)))
		// The response to a rejected form has this address, and a browser may load it again with GET.
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

// Public reports whether the path contains no project data. The login page needs such files.
func Public(path string) bool {
	return path != assetsPath && strings.HasPrefix(path, assetsPath)
}

const assetsPath = "/assets/"

// policy allows only what a page needs: nothing inline, nothing from other hosts, no embedding in frames.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; " +
	"img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// secure sets the headers of a page. With this referrer policy browsers send the origin of forms, so that those of other
// sites are rejected.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/html; charset=utf-8")
}

// page returns a handler that calls show, and renders its error.
func (p *Pages) page(show func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		if err := show(w, r); err != nil {
			status := statusOf(err)
			p.render(w, status, "error.html", view{
				Title:   http.StatusText(status),
				Project: p.projectName(r.PathValue("project")),
				Model:   service.OneLine(err),
			})
		}
	}
}

// projectName returns the project's name if the project exists, or "".
func (p *Pages) projectName(name string) string {
	if _, err := p.Service.Status(name); err != nil {
		return ""
	}
	return name
}

var (
	errNoRun  = errors.New("there is no such run")
	errNoPage = errors.New("there is no such page")
	errForm   = errors.New("the form is from another service, or from before a restart: reload the page")
	errBusy   = errors.New("too many logs are being read; try again in a moment")
)

func statusOf(err error) int {
	switch {
	case errors.Is(err, service.ErrNoProject), errors.Is(err, tracker.ErrNotFound), errors.Is(err, fs.ErrNotExist),
		errors.Is(err, errNoRun), errors.Is(err, errNoPage):
		return http.StatusNotFound
	case errors.Is(err, service.ErrNotOpen), errors.Is(err, service.ErrAway), errors.Is(err, journal.ErrUnavailable), errors.Is(err, errBusy):
		return http.StatusServiceUnavailable
	case errors.Is(err, errForm):
		return http.StatusForbidden
	}
	return http.StatusConflict
}

// view is the data of every template.
type view struct {
	Title   string
	Project string // empty: not a page of a project
	Tab     string // selected tab of the project
	Live    string // address of the page's stream of changes; empty: none
	Digest  string // digest of the live parts of the page
	Outside bool   // the user has not logged in
	Refresh int    // seconds after which a browser without the stream reloads the page; 0: never
	Model   any
}

// render writes a complete page, or an error.
func (p *Pages) render(w http.ResponseWriter, status int, name string, v view) {
	var b bytes.Buffer
	if err := p.templates.ExecuteTemplate(&b, name, v); err != nil {
		http.Error(w, fmt.Sprintf("page %s: %v", name, err), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// LoginPage asks for the token and then redirects to next. wrong means that the user sent a wrong token.
func (p *Pages) LoginPage(w http.ResponseWriter, next string, wrong bool) {
	secure(w.Header())
	status := http.StatusOK
	if wrong {
		status = http.StatusUnauthorized
	}
	p.render(w, status, "login.html", view{Title: "Log in", Outside: true, Model: map[string]any{"Next": Local(next), "Wrong": wrong}})
}

// Local returns the path if it is one of this server, and "/" for everything else: the value comes from a form.
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
