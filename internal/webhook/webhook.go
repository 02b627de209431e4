// Package webhook receives webhook deliveries from forges, and wakes the projects for which they are.
//
// A delivery only triggers a look at the backlog; its content is not used. So a lost delivery costs no more than the time to
// the next poll. Anybody may send requests, so their size, time and number are limited, and even genuine deliveries wake a
// project at a limited rate.
package webhook

import (
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

// Path is the prefix of the addresses for deliveries. The project's name follows it.
const Path = "/hooks/"

// Limits of a handler.
const (
	maxBody    = 1 << 20 // a delivery with an issue and a comment, both as long as forges allow, takes half of it
	readTime   = 10 * time.Second
	maxReaders = 16 // concurrent reads of bodies
	spacing    = 5 * time.Second
)

// Target is a project that accepts deliveries.
type Target struct {
	Check func(tracker.Delivery) (tracker.Notice, error) // verifies a delivery with the project's secret and name
	Wake  func()
}

// Errors of Config.Find.
var (
	ErrNoTarget = errors.New("no project of that name takes webhooks")
	ErrNotNow   = errors.New("the project cannot be woken now")
)

// Config configures a Handler. Find is required.
type Config struct {
	Find  func(project string) (Target, error)
	Count func(project, result string) // counts requests for known projects by result; default: none
}

// Handler handles deliveries. It is safe for concurrent use.
type Handler struct {
	Config

	mu      sync.Mutex
	known   map[string]*state // guarded by mu; by project
	reading []*reader         // guarded by mu; bodies being read, the oldest first
}

// state is the state of a project.
type state struct {
	seen seenDeliveries
	wake rateLimit
}

// New returns a handler for Path.
func New(c Config) *Handler {
	if c.Count == nil {
		c.Count = func(string, string) {}
	}
	return &Handler{Config: c, known: map[string]*state{}}
}

// ServeHTTP responds at once: the project does the work later.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	project := strings.TrimPrefix(r.URL.Path, Path)
	target, err := h.Find(project)
	switch {
	case errors.Is(err, ErrNoTarget):
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	case err != nil:
		w.Header().Set("Retry-After", "60")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	status, result, err := h.receive(w, r, project, target)
	h.Count(project, result)
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	w.WriteHeader(status)
}

var (
	errMethod    = errors.New("deliveries are sent with POST")
	errBusy      = errors.New("too many deliveries at once")
	errLarge     = errors.New("the delivery is too large")
	errBroken    = errors.New("the delivery did not arrive whole or in time")
	errDuplicate = errors.New("this delivery was received before")
)

// receive returns the status, and a result for the metrics.
func (h *Handler) receive(w http.ResponseWriter, r *http.Request, project string, target Target) (int, string, error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, "refused", errMethod
	}
	body, status, err := h.read(w, r)
	if err != nil {
		return status, "refused", err
	}
	notice, err := target.Check(tracker.Delivery{Header: r.Header, Body: body, Now: time.Now()})
	switch {
	case errors.Is(err, tracker.ErrForged), errors.Is(err, tracker.ErrStale):
		return http.StatusUnauthorized, "forged", err
	case errors.Is(err, tracker.ErrOtherProject):
		return http.StatusForbidden, "refused", err
	case err != nil:
		return http.StatusBadRequest, "refused", err
	}
	s := h.state(project)
	switch {
	case !s.seen.add(notice.ID, body):
		return http.StatusConflict, "replayed", errDuplicate
	case !notice.Wake:
		return http.StatusAccepted, "ignored", nil
	}
	s.wake.run(spacing, target.Wake)
	return http.StatusAccepted, "accepted", nil
}

// reader is a body that is being read.
type reader struct {
	control *http.ResponseController
	ended   bool // guarded by the handler's mu; another body has taken its place
}

// begin makes room for a body. A client without the secret that sends bodies slowly must not keep out deliveries of forges,
// which arrive fast: if all places are taken, the oldest read is aborted.
func (h *Handler) begin(r *reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = r.control.SetReadDeadline(time.Now().Add(readTime))
	if h.reading = append(h.reading, r); len(h.reading) > maxReaders {
		slowest := h.reading[0]
		h.reading, slowest.ended = h.reading[1:], true
		_ = slowest.control.SetReadDeadline(time.Unix(1, 0))
	}
}

// end reports whether another body has taken this one's place.
func (h *Handler) end(r *reader) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reading = slices.DeleteFunc(h.reading, func(o *reader) bool { return o == r })
	return r.ended
}

// read reads a body within the limits.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) ([]byte, int, error) {
	place := &reader{control: http.NewResponseController(w)}
	h.begin(place)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	ended := h.end(place)
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return nil, http.StatusRequestEntityTooLarge, errLarge
	}
	if err != nil && ended {
		w.Header().Set("Retry-After", "10")
		return nil, http.StatusServiceUnavailable, errBusy
	}
	if err != nil {
		return nil, http.StatusBadRequest, errBroken
	}
	return body, 0, nil
}

func (h *Handler) state(project string) *state {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known[project] == nil {
		h.known[project] = &state{seen: seenDeliveries{known: map[[sha256.Size]byte]bool{}}}
	}
	return h.known[project]
}
