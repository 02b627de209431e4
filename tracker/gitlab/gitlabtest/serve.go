package gitlabtest

import (
	"crypto/md5" //nolint:gosec // an entity tag, as GitLab makes it; guards nothing
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const apiPath = "/api/v4/"

// object is a JSON object.
type object map[string]any

// answer is the answer to a call.
type answer struct {
	status int
	header map[string]string
	body   any // encoded as JSON; []byte is sent unchanged
}

func ok(body any) answer      { return answer{status: http.StatusOK, body: body} }
func created(body any) answer { return answer{status: http.StatusCreated, body: body} }

func refusal(status int, format string, args ...any) answer {
	return answer{status: status, body: object{"message": fmt.Sprintf(format, args...)}}
}

func notFound(what string) answer { return refusal(http.StatusNotFound, "404 %s Not Found", what) }

func forbidden() answer { return refusal(http.StatusForbidden, "403 Forbidden") }

func badParameter(format string, args ...any) answer {
	return answer{status: http.StatusBadRequest, body: object{"error": fmt.Sprintf(format, args...)}}
}

// invalid refuses the value of a field.
func invalid(field, why string) answer {
	return answer{status: http.StatusBadRequest, body: object{"message": object{field: []string{why}}}}
}

// noRoute answers a path that the API does not have.
func noRoute() answer {
	return answer{status: http.StatusNotFound, body: object{"error": "404 Not Found"}}
}

// text returns the encoded body.
func (a answer) text() []byte {
	if body, raw := a.body.([]byte); raw {
		return body
	}
	body, _ := json.Marshal(a.body)
	return body
}

func (a answer) write(w http.ResponseWriter) {
	body := a.text()
	if _, raw := a.body.([]byte); !raw {
		w.Header().Set("Content-Type", "application/json")
	}
	for k, v := range a.header {
		w.Header().Set(k, v)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(body)
}

// call is an API request with the account that makes it.
type call struct {
	r     *http.Request
	user  *User
	token *token
	query url.Values
	body  object // of a write
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	n, fault := s.begin(r)
	status, username := 0, ""
	defer func() { s.end(n, status, username) }()
	if fault != nil && !fault.Effect {
		status = fault.Status
		fault.Apply(w, r, s.done, nil)
		return
	}
	if !strings.HasPrefix(r.URL.EscapedPath(), apiPath) {
		status, username = s.serveGit(w, r)
		return
	}
	c, a := s.authorize(w.Header(), r)
	if c != nil {
		username = c.user.Username
		a = s.dispatch(c)
	}
	status = a.status
	if fault != nil {
		fault.Apply(w, r, s.done, a.text())
		return
	}
	if a.status == http.StatusOK && r.Method == http.MethodGet && unchanged(w, r, a) {
		status = http.StatusNotModified
		return
	}
	a.write(w)
}

// authorize checks rate limit and token, and parses the body.
func (s *Server) authorize(h http.Header, r *http.Request) (*call, answer) {
	s.mu.Lock()
	h.Set("Date", time.Now().Add(s.skew).UTC().Format(http.TimeFormat))
	if s.limit >= 0 {
		left := max(0, s.limit-1)
		h.Set("RateLimit-Limit", "2000")
		h.Set("RateLimit-Observed", strconv.Itoa(2000-left))
		h.Set("RateLimit-Remaining", strconv.Itoa(left))
		h.Set("RateLimit-Reset", strconv.FormatInt(time.Now().Add(s.skew+s.reset).Unix(), 10))
		h.Set("RateLimit-Name", "throttle_authenticated_api")
		if s.limit == 0 {
			h.Set("Retry-After", strconv.Itoa(int(s.reset.Seconds())))
			s.mu.Unlock()
			return nil, answer{status: http.StatusTooManyRequests, body: []byte("Retry later\n")}
		}
		s.limit--
	}
	secret := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if v := r.Header.Get("PRIVATE-TOKEN"); v != "" {
		secret = v
	}
	tok := s.tokens[secret]
	s.mu.Unlock()
	if tok == nil {
		return nil, refusal(http.StatusUnauthorized, "401 Unauthorized")
	}
	write := r.Method != http.MethodGet
	self := strings.HasSuffix(r.URL.Path, "/personal_access_tokens/self")
	if !slices.Contains(tok.scopes, "api") && !self && (write || !slices.Contains(tok.scopes, "read_api")) {
		return nil, answer{status: http.StatusForbidden, body: object{
			"error": "insufficient_scope", "error_description": "The request requires higher privileges than provided by the access token.",
			"scope": "api",
		}}
	}
	c := &call{r: r, user: tok.user, token: tok, query: r.URL.Query()}
	if write && r.Method != http.MethodDelete {
		if err := json.NewDecoder(r.Body).Decode(&c.body); err != nil && !errors.Is(err, io.EOF) {
			return nil, badParameter("the body is no JSON object: %v", err)
		}
	}
	return c, answer{}
}

// unchanged answers 304 if the caller has the current answer.
func unchanged(w http.ResponseWriter, r *http.Request, a answer) bool {
	sum := md5.Sum(a.text()) //nolint:gosec // see the import
	tag := `W/"` + hex.EncodeToString(sum[:]) + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "max-age=0, private, must-revalidate")
	if r.Header.Get("If-None-Match") != tag {
		return false
	}
	for k, v := range a.header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}
