package githubtest

import (
	"net/http"
	"strconv"
)

// Fault happens to one request instead of its effect, or after it.
type Fault struct {
	Status int // answered; 0: the true answer
	Header http.Header
	Body   string
	// Effect lets the request take effect before the fault hides it.
	Effect bool
	Cut    bool // the answer ends in the middle
	Reset  bool // the connection breaks without an answer
	Hang   bool // no answer comes
}

// Faults are one of each kind; each can happen to any request.
func Faults() map[string]Fault {
	return map[string]Fault{
		"status 500":              {Status: http.StatusInternalServerError, Body: `{"message":"Server Error"}`},
		"status 502, no JSON":     {Status: http.StatusBadGateway, Body: "<html>Bad Gateway"},
		"status 503 after effect": {Status: http.StatusServiceUnavailable, Effect: true},
		"cut body":                {Cut: true},
		"cut body after effect":   {Cut: true, Effect: true},
		"malformed after effect":  {Status: http.StatusOK, Body: `{"id": 12,`, Effect: true},
		"null after effect":       {Status: http.StatusOK, Body: `null`, Effect: true},
		"nothing in it":           {Status: http.StatusOK, Body: `{}`},
		"nothing after effect":    {Status: http.StatusCreated, Body: `{}`, Effect: true},
		"empty after effect":      {Status: http.StatusOK, Effect: true},
		"other type after effect": {Status: http.StatusOK, Body: `[{"number": "one", "id": {}, "name": 3}, null, {}]`, Effect: true},
		"reset":                   {Reset: true},
		"reset after effect":      {Reset: true, Effect: true},
		"burst limit": {Status: http.StatusForbidden, Header: http.Header{"Retry-After": {"7"}},
			Body: `{"message":"You have exceeded a secondary rate limit."}`},
		"too many requests": {Status: http.StatusTooManyRequests, Body: `{"message":"slow down"}`},
	}
}

// apply answers in place of the server. The true answer is nil when the request took no effect.
func (s *Server) apply(w http.ResponseWriter, r *http.Request, f *Fault, truth []byte) {
	for k, v := range f.Header {
		w.Header()[k] = v
	}
	switch {
	case f.Hang:
		select {
		case <-r.Context().Done():
		case <-s.done:
		}
		panic(http.ErrAbortHandler)
	case f.Reset:
		panic(http.ErrAbortHandler)
	case f.Cut:
		if len(truth) == 0 {
			truth = []byte(`{"id": 1, "title": "something"}`)
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(len(truth)+10))
		_, _ = w.Write(truth[:len(truth)/2]) // the client may be gone
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body)) // the client may be gone
}
