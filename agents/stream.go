package agents

import (
	"bytes"
	"fmt"
)

// stream is what the decoders of JSON lines have in common.
type stream struct {
	session string
	lines   int // that were not empty
	unknown int
}

// line hands every line that is not empty to decode. What decode does not know, it says in its error; that becomes an
// EventUnknown beside the events it did find.
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
		events = append(events, Event{Kind: EventUnknown, Name: err.Error(), Text: clip(string(head), maxDetail)})
	}
	return events
}

// begin notes the session and tells of it when it is new. An id that can be none is not one to resume.
func (s *stream) begin(id string) ([]Event, error) {
	if id == "" || id == s.session {
		return nil, nil
	}
	if !validSession(id) {
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
