package gitlabtest

import (
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

	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
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

// call is an API request with the account that makes it.
type call struct {
	r     *http.Request
	user  *User
	token *token
	query url.Values
	body  object // of a write
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.EscapedPath(), apiPath) {
		s.serveGit(w, r)
		return
	}
	c, a := s.authorize(w.Header(), r)
	if c != nil {
		a = s.dispatch(c)
	}
	body, raw := a.body.([]byte)
	if !raw {
		body, _ = json.Marshal(a.body)
		w.Header().Set("Content-Type", "application/json")
	}
	for k, v := range a.header {
		w.Header().Set(k, v)
	}
	forgetest.Write(w, r, a.status, body)
}

// authorize checks rate limit and token, and parses the body.
func (s *Server) authorize(h http.Header, r *http.Request) (*call, answer) {
	s.mu.Lock()
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
