package githubtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

const api = "/api/v3"

// serve handles every request: git, GraphQL and the REST API.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.Contains(r.URL.Path, ".git/"):
		s.serveGit(w, r)
	case strings.HasPrefix(r.URL.Path, api+"/") || r.URL.Path == "/api/graphql":
		s.serveAPI(w, r)
	default:
		http.NotFound(w, r)
	}
}

// reply is an answer that is not encoded yet.
type reply struct {
	status int
	body   any // encoded as JSON; nil: no body
	header http.Header
	text   string
}

func ok(body any) reply { return reply{status: http.StatusOK, body: body} }

func refuse(status int, message string) reply {
	return reply{status: status, body: map[string]any{
		"message": message, "documentation_url": "https://docs.github.com/rest", "status": strconv.Itoa(status)}}
}

func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	answer, text := s.answer(r, body)
	s.mu.Unlock()
	maps.Copy(w.Header(), answer.header)
	forgetest.Write(w, r, answer.status, text)
}

// answer returns the validated answer. The caller must hold mu.
func (s *Server) answer(r *http.Request, body []byte) (reply, []byte) {
	access, refused := s.authenticate(r)
	if refused != nil {
		return s.encode(*refused, nil)
	}
	if r.URL.Path == "/api/graphql" {
		return s.encode(s.graph(access, body), nil)
	}
	path := strings.TrimPrefix(r.URL.EscapedPath(), api)
	if rest, byID := strings.CutPrefix(path, "/repositories/"+otherProjectID+"/"); byID {
		path = "/repos/other/place/" + rest
	} else if rest, byID := strings.CutPrefix(path, "/repositories/"+projectID); byID {
		path = "/repos/" + s.name + rest
	}
	known, err := s.desc.request(r, path, body)
	if err != nil {
		s.t.Errorf("githubtest: %s\n%s", withoutSchema(err), body)
		return s.encode(refuse(http.StatusUnprocessableEntity, err.Error()), nil)
	}
	return s.encode(s.route(r, path, access, body), known)
}

// encode encodes an answer and validates it against the description.
func (s *Server) encode(a reply, known *openapi3filter.RequestValidationInput) (reply, []byte) {
	if a.header == nil {
		a.header = http.Header{}
	}
	text := []byte(a.text)
	if a.text != "" {
		a.header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	if a.body != nil {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(a.body); err != nil {
			s.t.Errorf("githubtest: encode answer: %v", err)
		}
		text = b.Bytes()
		a.header.Set("Content-Type", "application/json; charset=utf-8")
	}
	if known == nil {
		return a, text
	}
	// An equal answer for the same path was validated already.
	what := sha256.Sum256(fmt.Appendf(nil, "%s %s %d\n%s", known.Request.Method, known.Request.URL.Path, a.status, text))
	if s.validated[what] {
		return a, text
	}
	s.validated[what] = true
	if err := validate(known, a.status, a.header, text); err != nil {
		s.t.Errorf("githubtest: %s", withoutSchema(err))
	}
	return a, text
}

// authenticate finds the account of a request.
func (s *Server) authenticate(r *http.Request) (*Access, *reply) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	a := s.tokens[token]
	if a == nil && s.app != nil && s.app.verifyJWT(token, s.clock.Now()) {
		a = &Access{jwt: true}
	}
	if a == nil || (!a.Ends.IsZero() && !s.clock.Now().Before(a.Ends)) {
		out := refuse(http.StatusUnauthorized, "Bad credentials")
		return nil, &out
	}
	return a, nil
}

// route finds the handler by the parts of the path. The caller must hold mu.
func (s *Server) route(r *http.Request, path string, a *Access, body []byte) reply {
	var parts []string
	for p := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		plain, err := url.PathUnescape(p)
		if err != nil {
			return refuse(http.StatusBadRequest, "Bad path")
		}
		parts = append(parts, plain)
	}
	q := &request{Server: s, method: r.Method, query: r.URL.Query(), access: a, body: map[string]any{}}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &q.body); err != nil {
			return refuse(http.StatusBadRequest, "Problems parsing JSON")
		}
	}
	if a.jwt != (parts[0] == "app" || parts[len(parts)-1] == "installation") {
		return refuse(http.StatusUnauthorized, "A JSON web token could not be decoded")
	}
	switch parts[0] {
	case "user", "users":
		return q.user(parts)
	case "app":
		return q.appToken(parts)
	}
	if len(parts) < 3 {
		return refuse(http.StatusNotFound, "Not Found")
	}
	name := parts[1] + "/" + parts[2]
	switch {
	case name == "other/place":
		return q.routeOther(parts[3:])
	case !a.jwt && s.repo.private && !s.canRead(a):
		return refuse(http.StatusNotFound, "Not Found")
	case strings.EqualFold(name, s.name):
	case strings.EqualFold(name, Owner+"/"+Repo): // the old name
		return q.redirect("/repositories/" + projectID + strings.TrimSuffix("/"+strings.Join(parts[3:], "/"), "/"))
	default:
		return refuse(http.StatusNotFound, "Not Found")
	}
	if r.Method != http.MethodGet && s.repo.archived {
		return refuse(http.StatusForbidden, "Repository was archived so is read-only.")
	}
	if r.Method != http.MethodGet && !a.jwt && !s.hasPermission(a, "write") {
		return refuse(http.StatusForbidden, "Resource not accessible by integration")
	}
	return q.project(parts[3:])
}

func (s *Server) canRead(a *Access) bool {
	u := s.users[strings.ToLower(a.Login)]
	return u != nil && u.Permission != "none"
}

func (s *Server) hasPermission(a *Access, permission string) bool {
	u := s.users[strings.ToLower(a.Login)]
	return u != nil && (u.Permission == permission || u.Permission == "admin")
}

// request is an authenticated request. The server's mu is held while it is served.
type request struct {
	*Server
	method string
	query  url.Values
	access *Access
	body   map[string]any
}

func (q *request) text(key string) string {
	v, _ := q.body[key].(string)
	return v
}

func (q *request) list(key string) (out []string) {
	all, _ := q.body[key].([]any)
	for _, v := range all {
		if one, ok := v.(string); ok {
			out = append(out, one)
		}
	}
	return out
}

func (q *request) project(parts []string) reply {
	if len(parts) == 0 {
		return q.repository()
	}
	switch parts[0] {
	case "issues":
		return q.issuesPath(parts[1:])
	case "pulls":
		return q.pullsPath(parts[1:])
	case "labels":
		return q.labelsPath(parts[1:])
	case "collaborators":
		if len(parts) == 1 {
			return q.collaborators()
		}
		return q.permission(parts[1])
	case "commits":
		return q.commit(parts[1], parts[2])
	case "branches":
		return q.protection(parts[1])
	case "rules":
		return q.ruleset()
	case "actions":
		return q.jobLog(parts[2])
	case "installation":
		return q.installationReply()
	}
	return refuse(http.StatusNotFound, "Not Found")
}

// page returns the requested page of a list, with a Link header like GitHub's.
func page[T any](q *request, all []T, render func(T) map[string]any) reply {
	per, n := number(q.query.Get("per_page"), 30), number(q.query.Get("page"), 1)
	from := min((n-1)*per, len(all))
	to := min(from+per, len(all))
	out := make([]map[string]any, 0, to-from)
	for _, v := range all[from:to] {
		out = append(out, render(v))
	}
	a := ok(out)
	if to < len(all) {
		a.header = http.Header{"Link": {fmt.Sprintf(`<%s?page=%d>; rel="next"`, q.URL, n+1)}}
	}
	return a
}

func number(s string, fallback int) int {
	if n, err := strconv.Atoi(s); err == nil && n > 0 {
		return n
	}
	return fallback
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// withoutSchema omits the schema, which fills pages.
func withoutSchema(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\nSchema:")
	return text
}
