package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// ErrShape is returned for a line that is not JSON, or that has a field of an unexpected type.
var ErrShape = errors.New("unexpected JSON")

// Read decodes a line of JSON. After ErrShape the fields that could be decoded are set.
//
// Declare no field for data that you do not need, such as a tool's output: it is then skipped without using memory. Decode an
// array into one of fixed size, which drops the rest, and Clip texts.
func Read[T any](line []byte) (T, error) {
	var v T
	if json.Unmarshal(line, &v) != nil {
		return v, ErrShape
	}
	return v, nil
}

// Stream is the common part of line decoders. A decoder embeds it, sets Program, IsSessionID and Refusals at the start and the other
// exported fields while it decodes, calls Decode and Begin for its lines, and Report at the end.
type Stream struct {
	Program     string               // display name
	IsSessionID func(id string) bool // Description.IsSessionID
	// Refusals are the beginnings of the program's messages on stderr about its own command line and configuration. They count
	// only if nothing was printed, that is, before any agent was at work.
	Refusals []string

	Finished bool     // the program reported that it is done
	Failure  *Failure // reported by the program itself
	Waiting  string   // why it waits for its model service, as " (429 rate_limit)"; empty: it does not wait
	Class    Class    // class of the wait

	session string
	lines   int // number of lines that were not empty
	unknown int
}

// Decode passes a line to decode unless it is empty. An error of decode becomes an additional EventUnknown.
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

// Begin stores the session ID and returns an event if it is new. It rejects an ID that cannot be resumed.
func (s *Stream) Begin(id string) ([]Event, error) {
	if id == "" || id == s.session {
		return nil, nil
	}
	if len(id) > maxSession || s.IsSessionID == nil || !s.IsSessionID(id) {
		return nil, fmt.Errorf("session id %q", Clip(id, 60))
	}
	s.session = id
	return []Event{{Kind: EventSession, Session: id}}, nil
}

// Report returns the stream's part of the Report: session, failure and number of unknown lines.
func (s *Stream) Report(e Ending) Report {
	return Report{Session: s.session, Failure: s.failure(e), Unknown: s.unknown}
}

// Unknown returns the error for an event that may come from a newer version of a CLI.
func Unknown(parts ...string) error {
	kind := "event"
	for _, p := range parts {
		kind += " " + Clip(p, 60)
	}
	return fmt.Errorf("unknown %s", kind)
}

// Plausible returns the usage with implausible counts set to zero, which would spoil every sum, and ErrShape if there were any.
func (u Usage) Plausible() (Usage, error) {
	const maxCount = 1 << 48
	clean := u
	for _, n := range []*int64{&clean.Input, &clean.Output, &clean.CacheRead, &clean.CacheWrite} {
		if *n < 0 || *n > maxCount {
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

// LenientString is a string field that is "" if it is absent or has another type.
type LenientString string

// UnmarshalJSON never fails.
func (l *LenientString) UnmarshalJSON(raw []byte) error {
	var s string
	_ = json.Unmarshal(raw, &s)
	*l = LenientString(s)
	return nil
}
