// Package forgetest has what tests of forges share: the faults of networks and servers, and a repository that git reaches
// over HTTP.
package forgetest

import (
	"cmp"
	"maps"
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
	Hang   bool // no answer comes until the caller gives up or done is closed
}

// Apply answers in place of the server. The true answer is nil when the request took no effect.
func (f Fault) Apply(w http.ResponseWriter, r *http.Request, done <-chan struct{}, truth []byte) {
	switch {
	case f.Hang:
		select {
		case <-r.Context().Done():
		case <-done:
		}
		panic(http.ErrAbortHandler)
	case f.Reset:
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), f.Header)
	w.Header().Set("Content-Type", cmp.Or(f.Header.Get("Content-Type"), "application/json; charset=utf-8"))
	if f.Cut {
		if len(truth) == 0 {
			truth = []byte(`{"id": 1, "title": "something"}`)
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(truth)+10))
		_, _ = w.Write(truth[:len(truth)/2]) // the client may be gone
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body)) // the client may be gone
}
