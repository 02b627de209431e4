// Package forgetest is shared by the tests of forges: faults of networks and servers, and a git repository served over
// HTTP.
package forgetest

import (
	"cmp"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

// Fault replaces the answer to one request.
type Fault struct {
	Status int // status of the answer; 0: the true answer
	Header http.Header
	Body   string
	// Effect lets the request take effect before its answer is replaced.
	Effect bool
	Cut    bool // the answer is truncated
	Reset  bool // the connection breaks without an answer
	Hang   bool // no answer until the caller gives up or done is closed
}

// At returns a function for Inject that chooses the fault for the calls whose path ends like this.
func (f Fault) At(end string) func(Call) *Fault {
	return func(c Call) *Fault {
		if strings.HasSuffix(c.Path, end) {
			return &f
		}
		return nil
	}
}

// Apply writes the faulty answer. The true answer is nil if the request took no effect.
func (f Fault) Apply(w http.ResponseWriter, r *http.Request, done <-chan struct{}, realAnswer []byte) {
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
		if len(realAnswer) == 0 {
			realAnswer = []byte(`{"id": 1, "title": "something"}`)
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(realAnswer)+10))
		_, _ = w.Write(realAnswer[:len(realAnswer)/2]) // the client may be gone
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body)) // the client may be gone
}
