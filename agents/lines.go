package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// ErrShape is the error of a line that is not JSON, or has a field of another type than expected.
var ErrShape = errors.New("unexpected JSON")

// Read decodes a line of JSON. After ErrShape the fields that could be decoded are set.
//
// Have no field for what you do not need, such as a tool's output: it is skipped and costs no memory. Decode an array
// into one of fixed size, which drops the rest, and Clip texts.
func Read[T any](line []byte) (T, error) {
	var v T
	if json.Unmarshal(line, &v) != nil {
		return v, ErrShape
	}
	return v, nil
}

// Stream is what decoders of lines share. A decoder embeds it, sets the first fields when it is made and the others as it
// learns them, calls Decode and Begin for its lines, and Report at the end.
type Stream struct {
	Program string               // as people know it
	Resumes func(id string) bool // Description.Session
	// Refusals are the beginnings of the program's messages about its own command line and configuration on stderr. They
	// count only when nothing was printed, that is, before any agent was at work.
	Refusals []string

	Finished bool     // the program said that it is done
	Failure  *Failure // that it reported itself
	Waiting  string   // for its model service, as " (429 rate_limit)"; empty: it does not wait
	Class    Class    // of the wait

	session string
	lines   int // that were not empty
	unknown int
}

// Decode passes a line that is not empty to decode. An error of decode becomes an EventUnknown beside the events.
func (s *Stream) Decode(line []byte, decode func([]byte) ([]Event, error)) []Event {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil
	}
	s.lines++
	events, err := decode(line)
	if err != nil {
		s.unknown++
		head := line[:min(len(line), MaxDetail*4)]
		events = append(events, Event{Kind: EventUnknown, Name: Clip(err.Error(), MaxDetail), Text: Clip(string(head), MaxDetail)})
	}
	return events
}

// Begin stores the session and reports a new one. An id that no session can have is not one to resume.
func (s *Stream) Begin(id string) ([]Event, error) {
	if id == "" || id == s.session {
		return nil, nil
	}
	if len(id) > maxSession || s.Resumes == nil || !s.Resumes(id) {
		return nil, fmt.Errorf("session id %q", Clip(id, 60))
	}
	s.session = id
	return []Event{{Kind: EventSession, Session: id}}, nil
}

// Report is what the stream has of the Report: session, failure and unknown lines.
func (s *Stream) Report(e Ending) Report {
	return Report{Session: s.session, Failure: s.failure(e), Unknown: s.unknown}
}

// Unknown is the error of an event that a newer version of a CLI may have.
func Unknown(parts ...string) error {
	kind := "event"
	for _, p := range parts {
		kind += " " + Clip(p, 60)
	}
	return fmt.Errorf("unknown %s", kind)
}

// Sane returns the usage without counts that cannot be, which would spoil every sum, and ErrShape if there
// were any.
func (u Usage) Sane() (Usage, error) {
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
		return clean, ErrShape
	}
	return clean, nil
}

// Loose is a text that may be of another type, or absent; it is "" then.
type Loose string

// UnmarshalJSON never fails.
func (l *Loose) UnmarshalJSON(raw []byte) error {
	var s string
	_ = json.Unmarshal(raw, &s)
	*l = Loose(s)
	return nil
}
