package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// What a hostile stream can make a decoder keep is bounded: an array is decoded into one of fixed size, which drops the
// rest, and texts are clipped. A field that no struct names, such as a tool's output, is skipped and costs no memory.

// errShape is the error of a line that is not JSON, or has a field of another type than expected.
var errShape = errors.New("unexpected JSON")

// read decodes a line. After an error the fields that could be decoded are set.
func read[T any](line []byte) (T, error) {
	var v T
	if json.Unmarshal(line, &v) != nil {
		return v, errShape
	}
	return v, nil
}

// stream is the common part of the decoders of JSON lines.
type stream struct {
	valid   func(id string) bool // Description.Session
	session string
	lines   int // that were not empty
	unknown int
}

// line passes every line that is not empty to decode. An error of decode becomes an EventUnknown beside the events.
func (s *stream) line(line []byte, decode func([]byte) ([]Event, error)) []Event {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil
	}
	s.lines++
	events, err := decode(line)
	if err != nil {
		s.unknown++
		head := line[:min(len(line), maxDetail*4)]
		events = append(events, Event{Kind: EventUnknown, Name: clip(err.Error(), maxDetail), Text: clip(string(head), maxDetail)})
	}
	return events
}

// begin stores the session and reports a new one. An id that no session can have is not one to resume.
func (s *stream) begin(id string) ([]Event, error) {
	if id == "" || id == s.session {
		return nil, nil
	}
	if !s.valid(id) {
		return nil, fmt.Errorf("session id %q", clip(id, 60))
	}
	s.session = id
	return []Event{{Kind: EventSession, Session: id}}, nil
}

// unknownKind is the error of an event that a newer version of a CLI may have.
func unknownKind(parts ...string) error {
	kind := "event"
	for _, p := range parts {
		kind += " " + clip(p, 60)
	}
	return fmt.Errorf("unknown %s", kind)
}

// sane returns the usage without counts that cannot be, which would spoil every sum.
func (u Usage) sane() (Usage, error) {
	const most = 1 << 48
	clean := u
	for _, n := range []*int64{&clean.Input, &clean.Output, &clean.CacheRead, &clean.CacheWrite} {
		if *n < 0 || *n > most {
			*n = 0
		}
	}
	if !(u.CostUSD >= 0 && u.CostUSD < 1e12) || math.IsNaN(u.CostUSD) {
		clean.CostUSD = 0
	}
	if clean != u {
		return clean, errShape
	}
	return clean, nil
}

// loose is a text that may be of another type, or absent; it is "" then.
type loose string

// UnmarshalJSON never fails.
func (l *loose) UnmarshalJSON(raw []byte) error {
	var s string
	_ = json.Unmarshal(raw, &s)
	*l = loose(s)
	return nil
}
