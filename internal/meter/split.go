package meter

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// events reads server-sent events.
func (a *Answer) events(p []byte) {
	for until := len(p); ; {
		if len(p) <= until && a.lines == 0 && len(a.part.bytes) == 0 && !a.part.overlong {
			p, until = dropWithoutUsage(p)
		}
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			a.part.add(p)
			return
		}
		line := p[:end]
		if len(a.part.bytes) > 0 || a.part.overlong || len(line) > maxPart {
			a.part.add(line)
			line = a.part.bytes
		}
		a.line(bytes.TrimSuffix(line, []byte("\r")), a.part.overlong)
		a.part.reset()
		p = p[end+1:]
	}
}

// dropWithoutUsage drops complete events without usage from the beginning of p; nearly all are such. Until no more than until bytes are
// left, another call could drop nothing more. So no byte is searched twice.
func dropWithoutUsage(p []byte) (rest []byte, until int) {
	if len(p) > maxPart {
		return p, -1
	}
	silent := len(p)
	if at := bytes.Index(p, []byte("usage")); at >= 0 {
		silent, until = at, len(p)-at-1
	}
	if end := bytes.LastIndex(p[:silent], []byte("\n\n")); end >= 0 {
		p = p[end+2:]
	}
	return p, until
}

// line processes a line of an event stream. Nearly always the JSON of an event is one line, which is decoded at once: the
// stream may be cut before the empty line that ends the event.
func (a *Answer) line(line []byte, over bool) {
	value, isData := bytes.CutPrefix(line, []byte("data:"))
	switch {
	case over:
		a.skipped = true
	case len(line) == 0:
		if a.data.overlong {
			a.skipped = true
		} else if a.lines > 1 {
			a.decodeUsage(a.data.bytes)
		}
		a.data.reset()
		a.lines = 0
	case isData:
		a.lines++
		if a.lines == 1 {
			a.decodeUsage(value)
		}
		a.data.add(value)
		a.data.add([]byte("\n"))
	}
}

// decodeUsage decodes the JSON of an event that may state usage. Most events state none, or null as in chat completions, and are skipped.
func (a *Answer) decodeUsage(event []byte) {
	for rest := event; ; {
		_, after, found := bytes.Cut(rest, []byte("usage"))
		switch {
		case !found:
			return
		case !bytes.HasPrefix(after, []byte(`":null`)):
			a.read(event)
			return
		}
		rest = after
	}
}

func (a *Answer) read(text []byte) {
	a.reads++
	a.finalUsage.read(text, &a.startUsage)
}

// document reads one or more JSON values. It splits an outermost array into elements and an object into members, so that
// these count even if the rest is cut off or too long.
func (a *Answer) document(p []byte) {
	begin := 0
	for i, c := range p {
		switch {
		case a.backslash:
			a.backslash = false
		case a.text:
			a.backslash, a.text = c == '\\', c != '"'
		case c == '"':
			a.text = true
		case c == '{' || c == '[':
			a.depth++
			if a.depth == 1 {
				a.object, begin = c == '{', i+1
			}
		case c == ',' && a.depth == 1:
			a.member(p[begin:i])
			begin = i + 1
		case c == '}' || c == ']':
			a.depth--
			switch {
			case a.depth == 1:
				a.member(p[begin : i+1])
				begin = i + 1
			case a.depth == 0:
				a.member(p[begin:i])
			case a.depth < 0:
				a.depth, a.skipped = 0, true
			}
		}
	}
	if a.depth > 0 {
		a.part.add(p[begin:])
	}
}

// member decodes an element or member of the outermost value. last is its final piece.
func (a *Answer) member(last []byte) {
	a.part.add(last)
	whole := bytes.TrimSpace(a.part.bytes)
	switch {
	case a.part.overlong:
		a.skipped = true
	case len(whole) > 0 && a.object:
		a.read(append(append([]byte{'{'}, whole...), '}'))
	case len(whole) > 0:
		a.read(whole)
	}
	a.part.reset()
}

const (
	frameLength   = 4  // size of a frame's length field, which counts itself
	smallestFrame = 16 // size in bytes of a frame without headers and payload
)

// frames reads an AWS event stream frame by frame.
func (a *Answer) frames(p []byte) {
	for len(p) > 0 {
		if a.drop > 0 {
			n := min(a.drop, int64(len(p)))
			a.drop -= n
			p = p[n:]
			continue
		}
		want := int64(frameLength)
		if len(a.part.bytes) >= frameLength {
			want = int64(binary.BigEndian.Uint32(a.part.bytes))
			if want < smallestFrame {
				a.skipped, a.decode = true, func([]byte) {}
				return
			}
			if want > maxPart {
				a.skipped, a.drop = true, want-int64(len(a.part.bytes))
				a.part.reset()
				continue
			}
		}
		n := min(int(want)-len(a.part.bytes), len(p))
		a.part.add(p[:n])
		p = p[n:]
		if want > frameLength && len(a.part.bytes) == int(want) {
			a.frame(a.part.bytes)
			a.part.reset()
		}
	}
}

// frame decodes one frame. InvokeModel wraps the model's own events in base64; Converse has plain JSON.
func (a *Answer) frame(frame []byte) {
	message, err := eventstream.NewDecoder().Decode(bytes.NewReader(frame), nil)
	if err != nil {
		a.skipped = true
		return
	}
	var chunk struct {
		Bytes []byte `json:"bytes"`
	}
	if json.Unmarshal(message.Payload, &chunk) == nil && len(chunk.Bytes) > 0 {
		a.decodeUsage(chunk.Bytes)
		return
	}
	a.decodeUsage(message.Payload)
}
